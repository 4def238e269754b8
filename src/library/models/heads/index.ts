export { FirstPositions, firstOf, type Reads, readOfEach } from "./first-positions.ts";
export { rowLoss, spanLoss } from "./losses.ts";
export { Pooler } from "./pooler.ts";
