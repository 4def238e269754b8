/** Messages to all ranks of a run: direct on one host, along a tree over several. The only door of this room. */

export { answerRelay, type KnownMembers } from "./answer-relay.ts";
export { Broadcast } from "./broadcast.ts";
