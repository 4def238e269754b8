import type { PlannedPrecision } from "./byte-scheme.ts";

/** A connection between two ranks. */
export interface Link {
  /** In each direction, as large collectives reach it. */
  readonly bytesPerSecond: number;
  /** Latency of one hop. */
  readonly latencyS: number;
}

/** Machines in the cost model: one device per rank. */
export interface Cluster {
  readonly name: string;
  readonly ranksPerNode: number;
  /** Memory of one device. */
  readonly memoryBytes: number;
  /** Rate of large matrix products of 16-bit numbers, as reached in practice. */
  readonly flopsPerSecond: number;
  /** Rate of large matrix products of float32 numbers. */
  readonly float32FlopsPerSecond: number;
  readonly memoryBytesPerSecond: number;
  /** The cache of one device, and its speed for reading and writing. */
  readonly cache: { readonly bytes: number; readonly bytesPerSecond: number };
  /** The connection of one rank. */
  readonly withinNode: Link;
  /** The connection of one node, shared by the groups that cross it. */
  readonly betweenNodes: Link;
}

const GIGABYTE = 1e9;
const TERAFLOPS = 1e12;
const MICROSECOND = 1e-6;
const MEBIBYTE = 2 ** 20;

/** No cache: training's tensors exceed a GPU's, whose speed is not published, so all of them go through memory. */
const noCache = { bytes: 0, bytesPerSecond: Number.POSITIVE_INFINITY } as const;

const link = (bytesPerSecond: number, latencyS: number): Link => ({ bytesPerSecond, latencyS });

/** Eight H100 80 GB with NVLink 4, 400 Gb/s per device. */
// biome-ignore format: a row of the table below
const h100 = {
  name: "h100", ranksPerNode: 8, memoryBytes: 80 * GIGABYTE, memoryBytesPerSecond: 3000 * GIGABYTE, cache: noCache,
  flopsPerSecond: 495 * TERAFLOPS, float32FlopsPerSecond: 33.5 * TERAFLOPS,
  withinNode: link(360 * GIGABYTE, 4 * MICROSECOND), betweenNodes: link(360 * GIGABYTE, 10 * MICROSECOND),
} as const satisfies Cluster;

/**
 * Machines to plan for. Devices are taken at half of the advertised rate of their matrix units, which large products in
 * training reach; links at the rate of large NCCL collectives. Calibrate for more precision.
 */
// biome-ignore format: a table, with three lines for each row
export const clusters = {
  /**
   * One core of a server CPU with AVX-512 BF16 and no AMX per rank, as measured on an EPYC of 2024 with 16 MiB of last-level cache
   * per core (docs/internals/planner.md); messages between threads.
   */
  cpu: {
    name: "cpu", ranksPerNode: 64, memoryBytes: 16 * GIGABYTE, memoryBytesPerSecond: 32 * GIGABYTE,
    cache: { bytes: 16 * MEBIBYTE, bytesPerSecond: 100 * GIGABYTE },
    flopsPerSecond: 0.43 * TERAFLOPS, float32FlopsPerSecond: 0.215 * TERAFLOPS,
    withinNode: link(6 * GIGABYTE, 10 * MICROSECOND), betweenNodes: link(1 * GIGABYTE, 50 * MICROSECOND),
  },
  /** Eight V100 32 GB with NVLink 2, 100 Gb/s per node. */
  v100: {
    name: "v100", ranksPerNode: 8, memoryBytes: 32 * GIGABYTE, memoryBytesPerSecond: 800 * GIGABYTE, cache: noCache,
    flopsPerSecond: 62 * TERAFLOPS, float32FlopsPerSecond: 7.85 * TERAFLOPS,
    withinNode: link(120 * GIGABYTE, 5 * MICROSECOND), betweenNodes: link(11 * GIGABYTE, 15 * MICROSECOND),
  },
  /** Eight A100 80 GB with NVLink 3, 200 Gb/s per device. */
  a100: {
    name: "a100", ranksPerNode: 8, memoryBytes: 80 * GIGABYTE, memoryBytesPerSecond: 1800 * GIGABYTE, cache: noCache,
    flopsPerSecond: 156 * TERAFLOPS, float32FlopsPerSecond: 9.75 * TERAFLOPS,
    withinNode: link(230 * GIGABYTE, 4 * MICROSECOND), betweenNodes: link(180 * GIGABYTE, 12 * MICROSECOND),
  },
  h100,
  /** An H100 with more and faster memory: 141 GB. */
  h200: { ...h100, name: "h200", memoryBytes: 141 * GIGABYTE, memoryBytesPerSecond: 4300 * GIGABYTE },
} as const satisfies Record<string, Cluster>;

/** A name of {@link clusters}. */
export type ClusterName = keyof typeof clusters;

/** Returns the cluster with measured values in place of assumed ones. */
export function calibrated(
  cluster: Cluster,
  measured: Partial<Omit<Cluster, "name" | "withinNode" | "betweenNodes">>,
): Cluster {
  return { ...cluster, ...measured };
}

/** Returns the rate of a rank's matrix products in `precision`; for mixed precision that of 16 bits. */
export function productRate(cluster: Cluster, precision: PlannedPrecision): number {
  return precision === "fp32" ? cluster.float32FlopsPerSecond : cluster.flopsPerSecond;
}

/**
 * The slowest hop of a ring through some ranks. Within a node its links are not shared; between nodes a group gets its
 * members' share of the node's link, since the other ranks form similar groups.
 */
export function linkOf(cluster: Cluster, ranks: readonly number[]): Link {
  const nodes = Map.groupBy(ranks, (rank) => Math.floor(rank / cluster.ranksPerNode));
  if (nodes.size === 1) return cluster.withinNode;
  const numMembers = Math.max(...[...nodes.values()].map((members) => members.length));
  const { bytesPerSecond, latencyS } = cluster.betweenNodes;
  const share = (bytesPerSecond * numMembers) / cluster.ranksPerNode;
  return { bytesPerSecond: Math.min(share, cluster.withinNode.bytesPerSecond), latencyS };
}

/** Time of a ring pass, an all-gather or a reduce-scatter of `gatheredBytes`: n − 1 hops of an n-th each. */
export function ringSeconds(link: Link, numRanks: number, gatheredBytes: number): number {
  if (numRanks === 1) return 0;
  const hops = numRanks - 1;
  return hops * link.latencyS + ((hops / numRanks) * gatheredBytes) / link.bytesPerSecond;
}

/** Time of an all-reduce: a reduce-scatter, then an all-gather. */
export function allReduceSeconds(link: Link, numRanks: number, gatheredBytes: number): number {
  return 2 * ringSeconds(link, numRanks, gatheredBytes);
}

/** Time of a message from one rank to another. */
export function sendSeconds(link: Link, sizeBytes: number): number {
  return link.latencyS + sizeBytes / link.bytesPerSecond;
}
