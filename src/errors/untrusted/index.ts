/** Readers for untrusted files: none of them can make the reader wait, fill the memory, or look up an inherited name. */
export * from "./bounded-file.ts";
export * from "./bounded-json.ts";
export * from "./file-status.ts";
export { LinearPattern, PatternRefused } from "./linear-pattern.ts";
export * from "./ownership.ts";
