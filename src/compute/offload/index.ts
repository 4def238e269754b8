export { ActivationOffloader, type OffloadedActivation } from "./activation-offloader.ts";
export { HostActivations } from "./host-activations.ts";
export { type Access, type PagedBlock, PagedBlocks, type PagingPlan } from "./paged-blocks.ts";
export { StagedRecords } from "./staged-records.ts";
