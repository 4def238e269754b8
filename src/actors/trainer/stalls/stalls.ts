import { readFileSync } from "node:fs";
import type { ActorInspection } from "../../../runtime/index.ts";
import { CHECKPOINTER } from "../recovery/supervised-checkpointer.ts";

/** How many times a long step an actor may take over a part of one: nobody knows how long a step should be. */
const STEPS_OF_PATIENCE = 5;

/** Of so many latest steps, the longest, one in so many, are not the rule: those that follow a restart, or a pause of the machine. */
const NUM_LATEST = 100;
const STEPS_AN_EXCEPTION = 20;

/** What takes as long as it takes, before the first step of a generation. */
const PREPARATIONS: readonly string[] = ["open", "join", "declare", "prepare"];

/** The roles of those who make steps. */
const RANK_GROUP: readonly string[] = ["feeder", "offload", "shard", "rank"];

/**
 * Tells who of a rank group stands still from who waits for them. A bound on time is known once a step was made: so many times
 * a long one of the latest, and no less than the run's own `stallMs`.
 */
export class Stalls {
  readonly #leastMs: number;
  readonly #firstMs: number;
  readonly #latestMs: number[] = [];

  /**
   * @param leastMs - what nobody is blamed for, however short the steps are
   * @param firstMs - the same while no step was made, and nobody knows how long one is
   */
  constructor(leastMs: number, firstMs: number) {
    this.#leastMs = leastMs;
    this.#firstMs = Math.max(leastMs, firstMs);
  }

  /** How long an actor may show no progress, in ms. */
  get afterMs(): number {
    if (this.#latestMs.length === 0) return this.#firstMs;
    return Math.max(this.#leastMs, STEPS_OF_PATIENCE * longOf(this.#latestMs));
  }

  /** How long a user's code may take before it is named, in ms. It ends no run, so it also applies before the first step. */
  get callAfterMs(): number {
    return this.#latestMs.length === 0 ? this.#leastMs : this.afterMs;
  }

  /** Takes in how long a step took. */
  stepTook(durationMs: number): void {
    this.#latestMs.push(durationMs);
    if (this.#latestMs.length > NUM_LATEST) this.#latestMs.shift();
  }

  /** Whether nobody but this actor, or who stopped its process, can be to blame where it makes no progress. */
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
    // It is never at one thing that takes long: native threads write for it.
    if (role === CHECKPOINTER) return unresponsiveMs !== undefined;
    if (!RANK_GROUP.includes(role)) return false;
    const isAtWork = state === "handling" && !PREPARATIONS.includes(handling ?? "");
    // Who waits in native code has come to its collective, and waits for one that is behind: that one is to blame.
    if (isAtWork && collective?.isWaiting !== true) return true;
    // Who is idle or waits in a process that stands still would do so for ever; the rank answers for it, or who is to be born.
    if (host === 0 && pid !== process.pid && isStopped(pid)) return role === "rank" || state === "starting";
    // Stuck behind an `await`, in the middle of what it said last; who has said nothing yet is being prepared.
    return unresponsiveMs !== undefined && op !== undefined;
  }
}

/** A duration that few of them exceed, and the longest as long as they are few. */
function longOf(durationsMs: readonly number[]): number {
  const numExceptions = Math.floor(durationsMs.length / STEPS_AN_EXCEPTION);
  return durationsMs.toSorted((a, b) => b - a)[numExceptions] ?? 0;
}

/** Whether the system has stopped a process, by a signal or for a debugger. */
function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return /^[Tt]$/.test(stat.charAt(stat.lastIndexOf(")") + 2));
  } catch {
    return false; // it has ended, and its end is told otherwise
  }
}
