/** How all ranks of a run are spoken to: straight on one host, along a tree over several. The only door of this room. */
export { Broadcast } from "./broadcast.ts";
export { type KnownMembers, passOn } from "./answer-relay.ts";
