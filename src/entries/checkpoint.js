export * from "#product/checkpoint"; // see index.js
