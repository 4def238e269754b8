export * from "#product/tensor"; // see index.js
