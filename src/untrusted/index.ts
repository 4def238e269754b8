/** What every reader of a stranger's file uses, so that none can be made to wait, to fill the memory, or to find what is not there. */
export {
  FileRefused,
  maxFileBytes,
  openRegular,
  openRegularSync,
  readBounded,
  readBoundedSync,
  readBoundedText,
  readBoundedTextSync,
} from "./bounded-file.ts";
export { JsonRefused, parseBoundedJson } from "./bounded-json.ts";
export { LinearPattern, type Match, PatternRefused } from "./linear-pattern.ts";
export { ownValue } from "./own-value.ts";
