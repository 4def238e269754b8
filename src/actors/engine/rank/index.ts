export { requireSequenceEntry, tensorPlanOf } from "./declare-model.ts";
export { loneRank } from "./lone-rank.ts";
export { ModelRunner } from "./model-runner.ts";
export { groupNamesOf } from "./rank-groups.ts";
export { RankLoop } from "./rank-loop.ts";
export { ENDS } from "./reached-actors.ts";
