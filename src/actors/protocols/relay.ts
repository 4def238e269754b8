import type { Failure } from "../../runtime/index.ts";

/** A host in a tree of them, by its ranks of the world: the shard of the first passes on what the others are told. */
export interface HostNode {
  readonly ranks: readonly number[];
  readonly below: readonly HostNode[];
}

/** What all ranks, or all shards, of a host and of the hosts below it are asked or told. */
export interface Relay {
  readonly host: HostNode;
  readonly to: "ranks" | "shards";
  /** Of the message. Of all that are passed on `join` is the first: it says who there is. */
  readonly kind: string;
  readonly message: object;
  /** By rank of the world, what one alone is told beside. */
  readonly own?: readonly (object | undefined)[] | undefined;
  /** How long each may take to answer; nobody is waited for where left out. */
  readonly deadlineMs?: number;
}

/** What they have answered, by rank of the world; or what the first failed with, which is not who passes it on. */
export type Relayed =
  | { readonly kind: "made"; readonly answers: readonly (readonly [rank: number, answer: unknown])[] }
  | { readonly kind: "failed"; readonly failure: Failure };

/**
 * How the ranks of many hosts are led: one message a host and way, whatever it has of ranks. All that the conductor says to a rank or
 * shard goes this way, or none of it: what went straight would overtake what is passed on.
 */
export type RelayProtocol = { relay: { in: Relay; out: Relayed } };
