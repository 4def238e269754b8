/** Readers for untrusted files: none of them can make the reader wait, fill the memory, or look up an inherited name. */
export {
  maxFileBytes,
  openRegular,
  openRegularSync,
  readBounded,
  readBoundedSync,
  readBoundedText,
  readBoundedTextSync,
} from "./bounded-file.ts";
export { JsonRefused, ownValue, parseBoundedJson } from "./bounded-json.ts";
export { fileStatus } from "./file-status.ts";
export { LinearPattern, PatternRefused } from "./linear-pattern.ts";
export {
  compileCache,
  makeFolder,
  makeOwnFolder,
  temporaryRoot,
  userCache,
  whyForeign,
  whyUnsafe,
} from "./ownership.ts";
