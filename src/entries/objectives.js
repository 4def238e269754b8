export * from "#product/objectives"; // see index.js
