import { ALIAS, type Carrier, GlooCarrier } from "./carrier.ts";
import type { Backend } from "./communicator.ts";

/**
 * What carries tensors between ranks: refs within one process, segments that the processes of a host share, or Gloo between
 * processes that share nothing.
 */
export type CarrierName = "alias" | "shared" | "gloo";

/** How the ranks of a run compute collectives together. Plain data. */
export interface GroupPlan {
  /** Names this run in the process, and beside others of the machine. */
  readonly run: string;
  /** Of the groups that forward and backward compute with. */
  readonly backend: Backend;
  /** Of data parallelism and of the borders between pipeline stages. */
  readonly carrier: CarrierName;
  /** Folder in which ranks of several processes meet; none within one process. */
  readonly rendezvous: string | undefined;
}

/** A member's place in a group of one generation. */
export interface GroupPlace {
  /** What the members are, a word that no other group of the generation has. */
  readonly group: string;
  /** Of the rank group: each builds its groups anew. */
  readonly generation: number;
  readonly rank: number;
  readonly size: number;
  /** How long a wait for another member may last. */
  readonly deadlineMs: number;
}

/**
 * Joins the group in which tensors are carried as planned; over Gloo it blocks until all members have.
 * @throws {TroupeError} what `openCommunicator` throws
 */
export function openCarrier(plan: GroupPlan, { group, generation, ...place }: GroupPlace): Carrier {
  const { run, carrier, rendezvous } = plan;
  if (carrier !== "gloo" || place.size === 1) return ALIAS;
  const name = `${run} ${generation} ${group}`;
  return new GlooCarrier({
    ...place,
    name,
    rendezvous: `${rendezvous}/${generation}-${group.replaceAll(" ", "-")}`,
  });
}
