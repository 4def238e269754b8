export type { Columns } from "./columns.ts";
export { mixRecords, type WeighedRecords } from "./mix-records.ts";
export { openRecords, type RecordOptions, type Records } from "./open-records.ts";
export type { RecordSource } from "./places.ts";
