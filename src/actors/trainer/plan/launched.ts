import type { RuntimeOptions } from "../../../job/options/index.ts";
import type { Launch } from "../../launch/index.ts";
import { optionError } from "../option-error.ts";

/** The launch of a run over several hosts. */
export interface Launched {
  readonly launch: Launch;
  /** Settings that all hosts must share, in words for error messages. */
  readonly about: string;
  /**
   * Settles once the script that leads it has been evaluated: until then it may open further models, and the other hosts stay.
   * Default: they leave with the first run.
   */
  readonly script?: Promise<unknown>;
}

/** The launch that a script of this process is to lead, and options that it need not give itself. */
let waiting: Led | undefined;

interface Led {
  readonly launched: Launched;
  readonly options: RuntimeOptions;
}

/** Has the next runtime that a script of this process spawns lead a launch. */
export function leadLaunch(led: Led): void {
  waiting = led;
}

/** The launch that waits for a runtime, once. */
export function takeLaunch(): Led | undefined {
  const led = waiting;
  waiting = undefined;
  return led;
}

/**
 * Adds a launch to a run's options: ranks are processes, as hosts share no memory, by default as many as the launch's.
 * @param leastRanks - one for each host of the launch by default, since the run that leads it is spread over all
 * @throws {TroupeError} `OPTION` for options that need one host
 */
export function launchedOptions(
  options: RuntimeOptions,
  launch: Launch,
  leastRanks = numHostsOf(launch),
): RuntimeOptions & { readonly ranks: number } {
  const { by, size } = launch;
  const numHosts = numHostsOf(launch);
  const { ranks = size, placement = "process", offload } = options;
  const started = `what ${by} has started on ${numHosts} host${numHosts === 1 ? "" : "s"}`;
  if (placement !== "process") {
    const hint = "leave it out: ranks of several hosts are processes";
    throw optionError("placement", `process in ${started}`, placement, hint);
  }
  if (ranks < leastRanks) {
    const hint = "ranks are counted over all hosts; leave it out for one a process that was started";
    throw optionError("ranks", `at least ${leastRanks} in ${started}`, ranks, hint);
  }
  if (offload?.parameters !== undefined) {
    const hint = "each host has the gathered parameters in memory of its own";
    throw optionError("offload.parameters", `left out in ${started}`, offload.parameters, hint);
  }
  return { ...options, ranks, placement };
}

/** The number of machines: a launch may start several processes on each. */
export function numHostsOf({ size, localSize }: Launch): number {
  return Math.max(1, Math.floor(size / localSize));
}

/**
 * The hosts that a further model's ranks are spread over, by number.
 * @param hosts - as asked for. Default: all, or the first ones if there are fewer ranks
 * @throws {TroupeError} `OPTION` for hosts that are not there, named twice, or more than ranks
 */
export function hostsOf(launch: Launch, ranks: number, hosts?: readonly number[]): readonly number[] {
  const all = Array.from({ length: numHostsOf(launch) }, (_, host) => host * launch.localSize);
  const chosen = hosts ?? all.slice(0, ranks);
  const areThere = chosen.every((host) => all.includes(host)) && new Set(chosen).size === chosen.length;
  if (areThere && chosen.length > 0 && chosen.length <= ranks) return chosen;
  const hint = "the order decides which ranks go where";
  const expected = `1 to ${Math.min(ranks, all.length)} of the hosts ${all.join(", ")}, each once`;
  throw optionError("hosts", expected, `[${chosen.join(", ")}]`, hint);
}

/** Places a rank's process, such as "rank-3", on a present host: consecutive ranks, which split layers, share one. */
export function placeOfRank(process: string, numRanks: number, places: readonly number[]): number {
  const rank = Number(/\d+$/.exec(process)?.[0] ?? 0);
  return places[Math.floor((rank * places.length) / numRanks)] ?? 0;
}
