export { type ByteScheme, byteScheme, type PlannedPrecision } from "./cost/byte-scheme.ts";
export { type Cluster, type ClusterName, calibrated, clusters, productRate } from "./cost/cluster.ts";
export { estimateStep } from "./cost/estimate.ts";
export { factsOf, type ModelFacts } from "./cost/model-facts.ts";
export { languageModel } from "./cost/model-trace.ts";
export { largestMemory, type PlanOptions, planMemory, traceOptions } from "./cost/plan-memory.ts";
export { numParametersOf, type StageShare, shareOfStages } from "./cost/rank-share.ts";
export { type StateBytes, snapshotBytes, stateBytes } from "./cost/state-memory.ts";
export {
  describeCount,
  describeEstimate,
  describeLayout,
  describeMemory,
  describeSimulation,
  describeSuggestions,
} from "./describe-plan.ts";
export { plannedJob } from "./planned-job.ts";
export { type Operation, rankProgram } from "./simulation/rank-program.ts";
export { chromeTrace, type Simulation, simulate } from "./simulation/simulate.ts";
export { suggestLayouts } from "./suggest.ts";
export { table } from "./table.ts";
