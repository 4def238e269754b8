export * from "#product/actors"; // see index.js
