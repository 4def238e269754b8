import type { Device } from "../tensor/index.ts";
import { ALIAS, type Carrier, HostCarrier, PeerCarrier, SendingCarrier } from "./carrier.ts";
import type { Backend } from "./communicator.ts";

/**
 * What carries tensors between ranks: refs within one process; segments that the processes of a host share; those within each of
 * several hosts, and Gloo between them; Gloo between processes that share nothing; or NCCL between such processes, each of which
 * has a device of its own.
 */
export type CarrierName = "alias" | "shared" | "hosts" | "gloo" | "nccl";

/**
 * In which order replicas' gradients are added where these do not all share a memory. `ordered`: rank after rank, the bits of one
 * host. `hierarchical`: within each memory rank after rank, and those sums in the order of the memories, so that one sum of each
 * crosses the network in place of a gradient of each rank; other bits, the same each time.
 */
export type Reduction = "ordered" | "hierarchical";

/** How the ranks of a run compute collectives together. Plain data. */
export interface GroupPlan {
  /** Names this run in the process, and beside others of the machine. */
  readonly run: string;
  /** Of the groups that forward and backward compute with. */
  readonly backend: Backend;
  /** Of data parallelism and of the borders between pipeline stages. */
  readonly carrier: CarrierName;
  /** Of data parallelism. */
  readonly reduction: Reduction;
  /** By rank of the world, the host that it lives on in this generation; left out where that is one. */
  readonly hosts?: readonly number[];
  /**
   * Where ranks of several processes meet: a folder, or `store:host:port`, a store that listens there already. None within
   * one process.
   */
  readonly rendezvous: string | undefined;
}

/** @returns where one group of a plan meets; `group` names a file where that is in a folder, and no two groups have one */
export function rendezvousOf({ rendezvous }: GroupPlan, group: string): string | undefined {
  // In a store the groups keep apart by their names.
  const isStore = rendezvous === undefined || rendezvous.startsWith("store:");
  return isStore ? rendezvous : `${rendezvous}/${group.replaceAll(" ", "-")}`;
}

/** A member's place in a group of one generation. */
export interface GroupPlace {
  /** What the members are, a word that no other group of the generation has. */
  readonly group: string;
  /** Of the rank group: each builds its groups anew. */
  readonly generation: number;
  /** This member, and all of them in order: of the world. */
  readonly rank: number;
  readonly ranks: readonly number[];
  /** By rank of the world, what it computes on. */
  readonly devices: readonly Device[];
  /** How long a wait for another member may last. */
  readonly deadlineMs: number;
}

/**
 * Joins the group in which tensors are carried as planned; where they are sent it blocks until all members have.
 * @throws {TroupeError} what `openCommunicator` throws
 */
export function openCarrier(plan: GroupPlan, place: GroupPlace): Carrier {
  const { group, generation, rank, ranks, devices, deadlineMs } = place;
  const { run, carrier } = plan;
  const rendezvous = rendezvousOf(plan, `${generation} ${group}`);
  if (ranks.length === 1 || rendezvous === undefined || carrier === "alias" || carrier === "shared") {
    const isSpread = ranks.some((other) => devices[other] !== devices[rank]);
    return isSpread ? new PeerCarrier(devices, rank) : ALIAS;
  }
  const hosts = ranks.map((other) => plan.hosts?.[other] ?? 0);
  const member = ranks.indexOf(rank);
  const name = `${run} ${generation} ${group}`;
  const sending = (backend: "gloo" | "nccl") =>
    new SendingCarrier({ backend, name, rank: member, size: ranks.length, rendezvous, deadlineMs });
  if (carrier !== "hosts") return sending(carrier);
  const isApart = hosts.some((host) => host !== hosts[0]);
  return new HostCarrier(hosts, member, isApart ? sending("gloo") : ALIAS);
}
