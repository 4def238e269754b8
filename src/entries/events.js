export * from "#product/events"; // see index.js
