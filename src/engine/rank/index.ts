export { tensorPlanOf } from "./declare-model.ts";
export { ModelRunner } from "./model-runner.ts";
export { type GroupPlan, groupNamesOf } from "./rank-groups.ts";
export type { StageLinkProtocol } from "./stage-link.ts";
