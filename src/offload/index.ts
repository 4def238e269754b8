export { ActivationShelter, type Sheltered } from "./activation-shelter.ts";
export { StagedRecords } from "./staged-records.ts";
