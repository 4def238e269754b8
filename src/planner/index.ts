export { type ByteScheme, byteScheme, type PlannedPrecision } from "./byte-scheme.ts";
export {
  type DeclaredParameter,
  factsOf,
  type GptShape,
  isGpt,
  layoutFactsOf,
  type ModelFacts,
  type RootParameter,
  type RootUse,
} from "./model-facts.ts";
export { largestMemory, type PlanOptions, planMemory, type RankMemory } from "./plan-memory.ts";
export { numParametersOf, type StageShare, shareOfStages } from "./rank-share.ts";
export { type Residence, type StateBytes, stateBytes } from "./state-memory.ts";
