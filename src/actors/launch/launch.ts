/** A process's place among those that a launcher has started together, one or several per host: plain data. */
export interface Launch {
  /** The launcher: "torchrun", "Slurm" and so on. */
  readonly by: string;
  /** Number of this process; 0 leads the run. */
  readonly rank: number;
  /** Number of processes. */
  readonly size: number;
  /** Number of this process on its host. */
  readonly localRank: number;
  /** Number of processes on this host. */
  readonly localSize: number;
  /** Address of process 0 and of the store through which all find each other. */
  readonly master: MasterAddress;
  /** Whether the launcher's agent hosts that store; else process 0 does. */
  readonly isStoreKept: boolean;
  /** Whether the launcher may replace a single lost process while the others go on; else it restarts all of them or none. */
  readonly replacesLost: boolean;
  /** Identifies the run among others that may use the same store. */
  readonly run: string;
}

/** Returns whether another process of the launch starts this host's actors: the first one of each host does. */
export function isCompanion({ localRank }: Launch): boolean {
  return localRank > 0;
}

/** Address of the store of a launch. */
export interface MasterAddress {
  readonly host: string;
  readonly port: number;
}

/** Time between the heartbeats of processes of different hosts, in milliseconds. */
export const HEARTBEAT_MS = 200;

/** @returns the number of its own heartbeats after which a process counts a silent one as lost; the next comes after `silenceSeconds` */
export function heartbeatOf(silenceSeconds: number): {
  readonly everyMs: number;
  readonly lostAfter: number;
} {
  return {
    everyMs: HEARTBEAT_MS,
    lostAfter: Math.max(1, Math.round((silenceSeconds * 1000) / HEARTBEAT_MS) - 1),
  };
}
