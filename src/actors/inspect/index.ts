export { isActivity, reportActivity } from "./activity.ts";
export { heldBy, ownerOf } from "./held-memory.ts";
export { histogramsOf, ShardHistograms } from "./histograms.ts";
export { checkPattern, matchesName, ShardInspection } from "./inspected-part.ts";
export { joinUpdates, summarizeUpdates, UpdateInspection, type UpdateSummary } from "./inspected-update.ts";
export { type Findings, type InspectionRequest, Inspections } from "./inspections.ts";
export * from "./tensor-summary.ts";
