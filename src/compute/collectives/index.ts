/** Collectives of groups of ranks, over memory, Gloo or NCCL. Other rooms import this file only. */
export {
  ALIAS,
  type Carried,
  type Carrier,
  type Incoming,
  type Recipient,
  type SentTensor,
} from "./carrier.ts";
export {
  abortGroup,
  type Backend,
  Communicator,
  type CommunicatorOptions,
  openCommunicator,
} from "./communicator.ts";
export {
  allGather,
  allReduce,
  allToAll,
  broadcast,
  copyToGroup,
  gatherFromGroup,
  gatherSequence,
  reduceFromGroup,
  reduceScatter,
  reduceScatterSequence,
  scatterToGroup,
} from "./differentiable.ts";
export {
  type CarrierName,
  describeRanks,
  type GroupPlace,
  type GroupPlan,
  nearCarrier,
  needsRendezvous,
  openCarrier,
  type Reduction,
  rendezvousOf,
} from "./group-plan.ts";
export type { Gathered, MemberRange, ProcessGroup } from "./process-group.ts";
export type { ReduceOp } from "./reduce-op.ts";
export { keepStore, Store, setHostAddress } from "./store.ts";
export type { Work } from "./work.ts";
