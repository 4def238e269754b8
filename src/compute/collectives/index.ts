/** Collectives of groups of ranks, over memory, Gloo or NCCL. Other rooms import this file only. */
export {
  ALIAS,
  type Carried,
  type Carrier,
  type Incoming,
  type Recipient,
  type SentTensor,
} from "./carrier.ts";
export * from "./communicator.ts";
export * from "./differentiable.ts";
export * from "./group-plan.ts";
export type * from "./process-group.ts";
export type { ReduceOp } from "./reduce-op.ts";
export { keepStore, Store, setHostAddress } from "./store.ts";
export type { Work } from "./work.ts";
