import { type ChildProcess, fork } from "node:child_process";
import { Worker } from "node:worker_threads";
import type { Backend } from "../../src/compute/collectives/index.ts";

/** The measurement that one rank makes. */
export interface RankTask {
  readonly backend: Backend;
  readonly name: string;
  readonly rank: number;
  readonly rendezvous: string;
  readonly suite: "usual" | "bmtrain";
}

/** One row of the table; medians. */
export interface Measured {
  readonly name: string;
  /** Bytes of the complete tensor; 0 if bytes are not measured. */
  readonly sizeBytes: number;
  readonly timeUs: number;
  /** Bytes that have to move over each rank's link; 0 for none. */
  readonly busBytes: number;
  /** A plain copy of `sizeBytes` by one thread. */
  readonly copyUs: number;
}

const script = new URL("./rank.ts", import.meta.url);

/** Starts one rank, which sends its rows as a message and ends. */
export function startRank(placement: "thread" | "process", task: RankTask): Worker | ChildProcess {
  const env = { ...process.env, TROUPE_BENCH_TASK: JSON.stringify(task) };
  return placement === "thread" ? new Worker(script, { env }) : fork(script, { env });
}
