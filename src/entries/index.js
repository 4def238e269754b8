// The entry of `import "troupe"`, in a clone and in the package. The nearest package.json says where the product is: in a clone
// src/entries/package.json, which names index.ts; in the package, which lacks that file, the package's own, which names dist/.
export * from "#product";
