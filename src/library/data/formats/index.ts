export { readConllu, type TaggedWords } from "./conllu.ts";
export { type IdxArray, openIdx } from "./idx.ts";
export { type JsonRecord, readJsonLines, recordOf } from "./json-lines.ts";
export { readLines } from "./lines.ts";
export { unpackLz4Frame } from "./lz4.ts";
export { optionalPackage } from "./optional-package.ts";
export { compressors, plainValue, readParquet, sliceOf } from "./parquet.ts";
export {
  checkRowGroup,
  PARQUET_TAIL_BYTES,
  parquetDescription,
  type RowGroup,
  rowGroups,
} from "./parquet-bounds.ts";
export { decodePicture } from "./picture.ts";
export { decodePng, type Picture, readPng } from "./png.ts";
export { type Preference, type PreferenceMessage, preferenceOf } from "./preference.ts";
export { readRecords, readTable, type TableRow } from "./records.ts";
export { exampleError, unreadable } from "./refusal.ts";
export { decodeSound, type SoundFacts, soundFacts } from "./sound.ts";
export { type Recording, readWav } from "./wav.ts";
