// The types of troupe.js.
export * from "#product";
