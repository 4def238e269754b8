export { readConllu, type TaggedWords } from "./conllu.ts";
export { type IdxArray, openIdx } from "./idx.ts";
export { type JsonRecord, readJsonLines, recordOf } from "./json-lines.ts";
export { readParquet } from "./parquet.ts";
export { type Picture, readPng } from "./png.ts";
export { readRecords, readTable, type TableRow } from "./records.ts";
export { exampleError, unreadable } from "./refusal.ts";
export { type Recording, readWav } from "./wav.ts";
