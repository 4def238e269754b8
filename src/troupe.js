// What `import "troupe"` finds, in a clone and in the package. The nearest package.json says where the product is: in a clone
// src/package.json, which names index.ts; in the package, which has no such file, that of the package, which names dist/.
export * from "#product";
