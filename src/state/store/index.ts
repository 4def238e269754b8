export { FileKeeper } from "./file-keeper.ts";
export { keeperOf } from "./keep-state.ts";
export { type SnapshotOrder, sendsPart } from "./snapshot.ts";
export {
  type BlockUpdate,
  type BlockUpdated,
  MemoryKeeper,
  type ShareWithRanks,
  type StateKeeper,
} from "./state-keeper.ts";
export { Turns } from "./turns.ts";
