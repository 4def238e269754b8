export { stateStoreOf } from "./choose-state-store.ts";
export { FileStateStore } from "./file-state-store.ts";
export { MemoryStateStore, type OptimizerStateStore } from "./state-store.ts";
export { Turns } from "./turns.ts";
