export { type ByteScheme, byteScheme, type PlannedPrecision } from "./byte-scheme.ts";
export { chromeTrace } from "./chrome-trace.ts";
export {
  allReduceSeconds,
  type Cluster,
  type ClusterName,
  calibrated,
  clusters,
  type Link,
  linkOf,
  ringSeconds,
  sendSeconds,
} from "./cluster.ts";
export {
  type ControlCosts,
  type ControlShape,
  type ControlSimulation,
  simulateControl,
} from "./control-plane.ts";
export {
  describeBytes,
  describeCount,
  describeEstimate,
  describeLayout,
  describeMemory,
  describeSimulation,
  describeSuggestions,
} from "./describe-plan.ts";
export { type Estimate, estimateStep } from "./estimate.ts";
export { HappensBefore } from "./happens-before.ts";
export { languageModel, type TextModel } from "./language-model.ts";
export {
  type DeclaredParameter,
  factsOf,
  isPlannable,
  type ModelFacts,
  type RootParameter,
} from "./model-facts.ts";
export {
  type ModelTrace,
  type PlannedModel,
  type TracedCall,
  type TraceOptions,
  traceModel,
  type Work,
} from "./model-trace.ts";
export { largestMemory, type PlanOptions, planMemory, type RankMemory, traceOptions } from "./plan-memory.ts";
export { type Operation, type ProgramShape, rankProgram } from "./rank-program.ts";
export { type ModelEnd, numParametersOf, type StageShare, shareOfStages } from "./rank-share.ts";
export { type Simulation, simulate } from "./simulate.ts";
export type { SimulationOptions, Span } from "./simulated-world.ts";
export { type Residence, type StateBytes, snapshotBytes, stateBytes } from "./state-memory.ts";
export { type Suggestion, type SuggestOptions, suggestLayouts } from "./suggest.ts";
export { table } from "./table.ts";
export { VirtualTime } from "./virtual-time.ts";
