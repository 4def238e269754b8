export * from "#product/tasks"; // see index.js
