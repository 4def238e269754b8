/** A process's place among those that a launcher has started together, one a host or several: plain data. */
export interface Launch {
  /** Who says so, and by which variables: "torchrun", "Slurm" and so on. */
  readonly by: string;
  /** Which of them this one is; 0 leads the run. */
  readonly rank: number;
  /** How many there are. */
  readonly size: number;
  /** Which of those on this host. */
  readonly localRank: number;
  /** How many there are on this host. */
  readonly localSize: number;
  /** Where process 0 is reached, and the store is in which all meet. */
  readonly master: MasterAddress;
  /** Whether the launcher's own agent keeps that store; else process 0 does. */
  readonly isStoreKept: boolean;
  /** Whether the launcher may give the place of one that is lost to another, while the rest go on; else it starts all again, or none. */
  readonly replacesLost: boolean;
  /** Names the run among others that may use the same store. */
  readonly run: string;
}

/** @returns whether another process of a launch starts what is to live on its machine: the first of each does */
export function isCompanion({ localRank }: Launch): boolean {
  return localRank > 0;
}

/** Where the processes of a launch meet. */
export interface MasterAddress {
  readonly host: string;
  readonly port: number;
}

/** How often processes of different hosts give a sign of life. */
export const HEARTBEAT_MS = 200;

/** @returns after how many of its own beats in silence a process counts another as lost: with the next, so many seconds have passed */
export function heartbeatOf(silenceSeconds: number): {
  readonly everyMs: number;
  readonly lostAfter: number;
} {
  return {
    everyMs: HEARTBEAT_MS,
    lostAfter: Math.max(1, Math.round((silenceSeconds * 1000) / HEARTBEAT_MS) - 1),
  };
}
