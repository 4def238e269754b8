export { StagedRecords } from "./staged-records.ts";
