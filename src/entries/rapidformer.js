export * from "#product/rapidformer"; // see index.js
