import { readFileSync } from "node:fs";
import type { ActorInspection } from "../../../runtime/index.ts";
import { CHECKPOINTER } from "../recovery/supervised-checkpointer.ts";

/** An actor may work on a part of a step for this many long steps before it counts as stuck. */
const STEPS_OF_PATIENCE = 5;

/** The longest twentieth of the latest hundred steps counts as exceptions, such as the first after a restart. */
const NUM_LATEST = 100;
const STEPS_AN_EXCEPTION = 20;

/** Messages that may take any time, before the first step of a generation. */
const PREPARATIONS: readonly string[] = ["open", "join", "declare", "prepare"];

/** Roles of the actors that make steps. */
const RANK_GROUP: readonly string[] = ["feeder", "offload", "shard", "rank"];

/**
 * Tells a stuck actor of a rank group from those that wait for it. After the first step the limit is a multiple of a
 * long recent step, and at least the run's `stallMs`.
 */
export class Stalls {
  readonly #leastMs: number;
  readonly #firstMs: number;
  readonly #latestMs: number[] = [];

  /** @param leastMs - the shortest limit, however short the steps are @param firstMs - the limit before the first step */
  constructor(leastMs: number, firstMs: number) {
    this.#leastMs = leastMs;
    this.#firstMs = Math.max(leastMs, firstMs);
  }

  /** How long an actor may show no progress, in ms. */
  get afterMs(): number {
    if (this.#latestMs.length === 0) return this.#firstMs;
    // A duration that few exceed; the longest one while there are few.
    const numExceptions = Math.floor(this.#latestMs.length / STEPS_AN_EXCEPTION);
    const longMs = this.#latestMs.toSorted((a, b) => b - a)[numExceptions] ?? 0;
    return Math.max(this.#leastMs, STEPS_OF_PATIENCE * longMs);
  }

  /** How long the user's code may take before it is named, in ms. It ends no run, so it also applies before the first step. */
  get callAfterMs(): number {
    return this.#latestMs.length === 0 ? this.#leastMs : this.afterMs;
  }

  /** Notes how long a step took. */
  stepTook(durationMs: number): void {
    this.#latestMs.push(durationMs);
    if (this.#latestMs.length > NUM_LATEST) this.#latestMs.shift();
  }

  /** Whether this actor is the one that is stuck, rather than waiting for another. */
  isToBlame({
    role = "",
    state,
    handling,
    unresponsiveMs,
    op,
    collective,
    host,
    pid,
  }: ActorInspection): boolean {
    // It never works on one thing for long: native threads write for it.
    if (role === CHECKPOINTER) return unresponsiveMs !== undefined;
    if (!RANK_GROUP.includes(role)) return false;
    const isAtWork = state === "handling" && !PREPARATIONS.includes(handling ?? "");
    // An actor that waits in native code has reached its collective: the rank that it waits for is to blame.
    if (isAtWork && collective?.isWaiting !== true) return true;
    // A stopped process never goes on, whatever state its actors show: blame its rank, or an actor that is still starting.
    if (host === 0 && pid !== process.pid && isStopped(pid)) return role === "rank" || state === "starting";
    // Stuck behind an `await`, in the operation that it noted last; an actor without one is still being prepared.
    return unresponsiveMs !== undefined && op !== undefined;
  }
}

/** Whether the system has stopped a process, by a signal or for a debugger. */
function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return /^[Tt]$/.test(stat.charAt(stat.lastIndexOf(")") + 2));
  } catch {
    return false; // it has ended, and its end is reported elsewhere
  }
}
