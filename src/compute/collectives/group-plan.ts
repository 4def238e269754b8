import { createHash } from "node:crypto";
import type { Device } from "../tensor/index.ts";
import { ALIAS, type Carrier, hostCarrier, peerCarrier, sendingCarrier } from "./carrier.ts";
import type { Backend } from "./communicator.ts";

/**
 * How tensors travel between ranks. `alias`: refs within one process. `shared`: segments that the processes of a host share.
 * `hosts`: such segments within each host and Gloo between hosts. `gloo`: Gloo between processes that share no memory.
 * `nccl`: NCCL between such processes, each with a device of its own.
 */
export type CarrierName = "alias" | "shared" | "hosts" | "gloo" | "nccl";

/**
 * Order in which replicas' gradients are added if the replicas do not all share memory. `ordered`: in rank order, with the
 * same bits as on one host. `hierarchical`: in rank order within each shared memory, then those sums in order, so that one
 * sum per memory crosses the network instead of one gradient per rank; other bits, but the same each time.
 */
export type Reduction = "ordered" | "hierarchical";

/** The plan by which the ranks of a run form groups. Plain data. */
export interface GroupPlan {
  /** Name of this run, unique in the process and on the machine. */
  readonly run: string;
  /** Backend of the groups that forward and backward use. */
  readonly backend: Backend;
  /** Carrier of data parallelism and between pipeline stages. */
  readonly carrier: CarrierName;
  /** Order of reductions in data parallelism. */
  readonly reduction: Reduction;
  /** Host of each rank of the world in this generation; left out if there is one host. */
  readonly hosts?: readonly number[];
  /**
   * Where ranks of several processes find each other: a folder, or `store:host:port`, a store that listens there already.
   * Undefined within one process.
   */
  readonly rendezvous: string | undefined;
  /**
   * Address of the store of each host in this generation, as in {@link rendezvous}. If given, groups use these stores instead.
   */
  readonly stores?: Readonly<Record<number, string>>;
}

/**
 * Returns where the members of one group find each other.
 * @param name - name of the group, unique at that place
 * @param ranks - members of the group, as ranks in the world
 * @returns the rendezvous for `openCommunicator`
 */
export function rendezvousOf(
  { rendezvous, hosts, stores }: GroupPlan,
  name: string,
  ranks: readonly number[],
): string | undefined {
  if (stores !== undefined) return stores[hosts?.[storeRankOf(ranks)] as number];
  // A store keeps groups apart by name, and a name may be longer than that of a file.
  const isStore = rendezvous === undefined || rendezvous.startsWith("store:");
  return isStore ? rendezvous : `${rendezvous}/${createHash("sha256").update(name).digest("hex")}`;
}

/** Picks the rank whose host keeps the group's store. Neighbouring groups get different hosts. */
function storeRankOf(ranks: readonly number[]): number {
  const [first = 0] = ranks;
  return ranks[first % ranks.length] as number;
}

/** Describes ranks of the world uniquely. The text is short if they are evenly spaced, as in most groups. */
export function describeRanks(ranks: readonly number[]): string {
  const [first = 0, second = first] = ranks;
  const step = second - first;
  const isEven = ranks.every((rank, place) => rank === first + place * step);
  return isEven && ranks.length > 2 ? `${first}..${ranks.at(-1)} by ${step}` : ranks.join("-");
}

/** One member's place in a group of one generation. */
export interface GroupPlace {
  /** Kind of the group, unique among groups of these ranks. */
  readonly group: string;
  /** Generation of the ranks: each generation builds its groups again. */
  readonly generation: number;
  /** This member, and all of them in order: of the world. */
  readonly rank: number;
  readonly ranks: readonly number[];
  /** Device of each rank of the world. */
  readonly devices: readonly Device[];
  /** Time limit of a wait for another member, in ms. */
  readonly deadlineMs: number;
}

/** Whether these ranks need a rendezvous before tensors travel between them: not if they share a process or memory. */
export function needsRendezvous(
  { carrier, hosts, rendezvous }: GroupPlan,
  ranks: readonly number[],
): boolean {
  if (ranks.length === 1 || rendezvous === undefined) return false;
  if (carrier === "gloo" || carrier === "nccl") return true;
  return carrier === "hosts" && ranks.some((rank) => hosts?.[rank] !== hosts?.[ranks[0] as number]);
}

/** Returns the carrier between ranks that need no rendezvous, see {@link needsRendezvous}. */
export function nearCarrier(
  { carrier, hosts = [] }: GroupPlan,
  { rank, devices }: Pick<GroupPlace, "rank" | "devices">,
): Carrier {
  if (carrier === "hosts") return hostCarrier(hosts, rank, ALIAS);
  return devices.every((device) => device === devices[rank]) ? ALIAS : peerCarrier(devices, rank);
}

/**
 * Opens the carrier of a group as planned. If tensors are sent, it blocks until all members have joined.
 * @throws {TroupeError} as `openCommunicator`
 */
export function openCarrier(plan: GroupPlan, place: GroupPlace): Carrier {
  const { group, generation, rank, ranks, deadlineMs } = place;
  const { run, carrier, hosts = [] } = plan;
  const name = `${run} ${generation} ${group} ${describeRanks(ranks)}`;
  const rendezvous = rendezvousOf(plan, name, ranks);
  if (rendezvous === undefined || !needsRendezvous(plan, ranks)) return nearCarrier(plan, place);
  const backend = carrier === "nccl" ? "nccl" : "gloo";
  const sending = sendingCarrier({ backend, name, rank, ranks, rendezvous, deadlineMs });
  return carrier === "hosts" ? hostCarrier(hosts, rank, sending) : sending;
}
