export * from "#product/nn"; // see index.js
