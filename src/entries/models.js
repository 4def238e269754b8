export * from "#product/models"; // see index.js
