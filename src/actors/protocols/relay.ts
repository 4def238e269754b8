import type { Failure } from "../../runtime/index.ts";

/** A node in the tree of hosts, with its ranks of the world. Its first rank's shard forwards messages to the hosts below. */
export interface HostNode {
  readonly ranks: readonly number[];
  readonly below: readonly HostNode[];
}

/** A message for all ranks, or all shards, of a host and of the hosts below it. */
export interface Relay {
  readonly host: HostNode;
  readonly to: "ranks" | "shards";
  /** Kind of the message. The first one relayed must be `join`, which brings the refs of the peers. */
  readonly kind: string;
  readonly message: object;
  /** Fields for single receivers, by rank of the world, added to `message`. */
  readonly own?: readonly (object | undefined)[] | undefined;
  /** The longest wait for each answer; left out, the message is sent without waiting. */
  readonly deadlineMs?: number;
}

/** The answers by rank of the world, or the error of the first receiver that failed (not of the relay). */
export type Relayed =
  | { readonly kind: "made"; readonly answers: readonly (readonly [rank: number, answer: unknown])[] }
  | { readonly kind: "failed"; readonly failure: Failure };

/**
 * Sends one message per host instead of one per rank. The conductor sends either everything to ranks and shards this
 * way or nothing: a direct message would overtake relayed ones.
 */
export type RelayProtocol = { relay: { in: Relay; out: Relayed } };
