// The entry of `import "troupe"`, in a clone and in the package; the files beside it are those of `troupe/tensor` and so on. The nearest
// package.json says where the product is: in a clone src/entries/package.json, which names the .ts of the same name; in the package,
// which lacks that file, the package's own, which names dist/. Types are found by "exports": the .ts, or what was built of it.
export * from "#product/index";
