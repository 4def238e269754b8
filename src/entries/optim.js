export * from "#product/optim"; // see index.js
