import { createHash } from "node:crypto";
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
  /** By number of a host, the same of a store that it keeps in this generation: where groups meet then. */
  readonly stores?: Readonly<Record<number, string>>;
}

/**
 * @param name - of the group, which no other has that meets in one place with it
 * @param ranks - of the world, its members
 * @returns where one group of a plan meets
 */
export function rendezvousOf(
  { rendezvous, hosts, stores }: GroupPlan,
  name: string,
  ranks: readonly number[],
): string | undefined {
  if (stores !== undefined) return stores[hosts?.[keeperOf(ranks)] as number];
  // In a store the groups keep apart by their names, which may be longer than those of files.
  const isStore = rendezvous === undefined || rendezvous.startsWith("store:");
  return isStore ? rendezvous : `${rendezvous}/${createHash("sha256").update(name).digest("hex")}`;
}

/** Of a group, the rank on whose host it meets: of groups side by side not the same one, as their first ranks follow each other. */
function keeperOf(ranks: readonly number[]): number {
  const [first = 0] = ranks;
  return ranks[first % ranks.length] as number;
}

/** @returns ranks of the world in words, other words for other ranks; few where they are evenly apart, as most groups' are */
export function describeRanks(ranks: readonly number[]): string {
  const [first = 0, second = first] = ranks;
  const step = second - first;
  const isEven = ranks.every((rank, place) => rank === first + place * step);
  return isEven && ranks.length > 2 ? `${first}..${ranks.at(-1)} by ${step}` : ranks.join("-");
}

/** A member's place in a group of one generation. */
export interface GroupPlace {
  /** What the members are: no other group of these ranks has it. */
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
 * @returns whether ranks of the world have to meet before tensors are carried among them: unless they are of one process, or have one
 *   memory
 */
export function mustMeet({ carrier, hosts, rendezvous }: GroupPlan, ranks: readonly number[]): boolean {
  if (ranks.length === 1 || rendezvous === undefined) return false;
  if (carrier === "gloo" || carrier === "nccl") return true;
  return carrier === "hosts" && ranks.some((rank) => hosts?.[rank] !== hosts?.[ranks[0] as number]);
}

/** @returns what carries tensors among any ranks that need not meet: see {@link mustMeet} */
export function nearCarrier(
  { carrier, hosts = [] }: GroupPlan,
  { rank, devices }: Pick<GroupPlace, "rank" | "devices">,
): Carrier {
  if (carrier === "hosts") return new HostCarrier(hosts, rank, ALIAS);
  return devices.every((device) => device === devices[rank]) ? ALIAS : new PeerCarrier(devices, rank);
}

/**
 * Joins the group in which tensors are carried as planned; where they are sent it blocks until all members have.
 * @throws {TroupeError} what `openCommunicator` throws
 */
export function openCarrier(plan: GroupPlan, place: GroupPlace): Carrier {
  const { group, generation, rank, ranks, deadlineMs } = place;
  const { run, carrier, hosts = [] } = plan;
  const name = `${run} ${generation} ${group} ${describeRanks(ranks)}`;
  const rendezvous = rendezvousOf(plan, name, ranks);
  if (rendezvous === undefined || !mustMeet(plan, ranks)) return nearCarrier(plan, place);
  const backend = carrier === "nccl" ? "nccl" : "gloo";
  const sending = new SendingCarrier({ backend, name, rank, ranks, rendezvous, deadlineMs });
  return carrier === "hosts" ? new HostCarrier(hosts, rank, sending) : sending;
}
