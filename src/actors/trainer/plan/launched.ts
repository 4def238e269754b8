import type { RuntimeOptions } from "../../../job/options/index.ts";
import type { Launch } from "../../launch/index.ts";
import { optionError } from "../option-error.ts";

/**
 * What a launcher's word adds to the options of a run: a process a rank, which share no memory, and a rank a process of the
 * launcher's unless others are asked for.
 * @throws {TroupeError} `OPTION` for what hosts cannot do
 */
export function launchedOptions(options: RuntimeOptions, launch: Launch): RuntimeOptions {
  const { by, size } = launch;
  const numHosts = numHostsOf(launch);
  const { ranks = size, placement = "process", offload } = options;
  const started = `what ${by} has started on ${numHosts} host${numHosts === 1 ? "" : "s"}`;
  if (placement !== "process") {
    const hint = "leave it out: ranks of several hosts are processes";
    throw optionError("placement", `process in ${started}`, placement, hint);
  }
  if (ranks < numHosts) {
    const hint = "ranks are counted over all hosts; leave it out for one a process that was started";
    throw optionError("ranks", `at least ${numHosts} in ${started}`, ranks, hint);
  }
  if (offload?.parameters !== undefined) {
    const hint = "each host has the gathered parameters in memory of its own";
    throw optionError("offload.parameters", `left out in ${started}`, offload.parameters, hint);
  }
  return { ...options, ranks, placement };
}

/** How many machines they are: several processes of a launch may share one. */
export function numHostsOf({ size, localSize }: Launch): number {
  return Math.max(1, Math.floor(size / localSize));
}

/**
 * Where a rank's process lives: neighbours stay together, so that ranks that split a layer do.
 * @param process - "rank-3"
 * @param places - the hosts that are there
 */
export function placeOfRank(process: string, numRanks: number, places: readonly number[]): number {
  const rank = Number(/\d+$/.exec(process)?.[0] ?? 0);
  return places[Math.floor((rank * places.length) / numRanks)] ?? 0;
}
