export * from "#product/data"; // see index.js
