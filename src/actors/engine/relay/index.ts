/** How all ranks of a run are spoken to: straight on one host, along a tree over several. The only door of this room. */

export { answerRelay, type KnownMembers } from "./answer-relay.ts";
export { Broadcast } from "./broadcast.ts";
