export { type ProblemType, rowLoss, spanLoss } from "./losses.ts";
export { firstPosition, Pooler } from "./pooler.ts";
