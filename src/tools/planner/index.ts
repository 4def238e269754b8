export { type ByteScheme, byteScheme, type PlannedPrecision } from "./cost/byte-scheme.ts";
export {
  allReduceSeconds,
  type Cluster,
  type ClusterName,
  calibrated,
  clusters,
  type Link,
  linkOf,
  productRate,
  ringSeconds,
  sendSeconds,
} from "./cost/cluster.ts";
export { type Estimate, estimateStep } from "./cost/estimate.ts";
export { languageModel, type TextModel } from "./cost/language-model.ts";
export {
  type DeclaredParameter,
  factsOf,
  type ModelFacts,
  type RootParameter,
} from "./cost/model-facts.ts";
export {
  type ModelTrace,
  type PlannedModel,
  type TracedCall,
  type TraceOptions,
  traceModel,
  type Work,
} from "./cost/model-trace.ts";
export {
  largestMemory,
  type PlanOptions,
  planMemory,
  type RankMemory,
  traceOptions,
} from "./cost/plan-memory.ts";
export { type ModelEnd, numParametersOf, type StageShare, shareOfStages } from "./cost/rank-share.ts";
export { type Residence, type StateBytes, snapshotBytes, stateBytes } from "./cost/state-memory.ts";
export { passingTogether } from "./cost/together.ts";
export {
  describeBytes,
  describeCount,
  describeEstimate,
  describeLayout,
  describeMemory,
  describeSimulation,
  describeSuggestions,
} from "./describe-plan.ts";
export { type PlannedJob, plannedJob } from "./planned-job.ts";
export { chromeTrace } from "./simulation/chrome-trace.ts";
export { HappensBefore } from "./simulation/happens-before.ts";
export { type Operation, type ProgramShape, rankProgram } from "./simulation/rank-program.ts";
export { type Simulation, simulate } from "./simulation/simulate.ts";
export type { SimulationOptions, Span } from "./simulation/simulated-world.ts";
export { VirtualTime } from "./simulation/virtual-time.ts";
export { type Suggestion, type SuggestOptions, suggestLayouts } from "./suggest.ts";
export { table } from "./table.ts";
