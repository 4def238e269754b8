export { FileKeeper } from "./file-keeper.ts";
export { keeperOf } from "./keep-state.ts";
export { MemoryKeeper, type ShareWithRanks, type StateKeeper } from "./state-keeper.ts";
export { Turns } from "./turns.ts";
