export * from "#product/export"; // see index.js
