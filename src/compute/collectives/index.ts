/** Collectives: what the ranks of a group compute together, over memory, Gloo or NCCL. The only door of this room. */
export { ALIAS, type Carried, type Carrier, type Incoming, type Recipient } from "./carrier.ts";
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
  mustMeet,
  nearCarrier,
  openCarrier,
  type Reduction,
  rendezvousOf,
} from "./group-plan.ts";
export type { Gathered, MemberRange, ProcessGroup } from "./process-group.ts";
export type { ReduceOp } from "./reduce-op.ts";
export { keepStore, Store, setHostAddress } from "./store.ts";
export type { Work } from "./work.ts";
