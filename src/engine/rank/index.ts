export { requireSequenceEntry, tensorPlanOf } from "./declare-model.ts";
export { ModelRunner } from "./model-runner.ts";
export { groupNamesOf } from "./rank-groups.ts";
export { RankLoop } from "./rank-loop.ts";
