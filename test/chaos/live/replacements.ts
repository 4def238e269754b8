import { processorMs } from "../../../bench/measure/processor-time.ts";
import type { Runtime } from "../../../src/entries/index.ts";

/**
 * The parts of a replacement, each up to a moment: the death is noticed; new actors have started; they have joined and declared the model;
 * each has its part of the state; the script has an answer again, after the replay. A judge has the first two.
 */
export const phases = ["noticed", "spawned", "joined", "restored", "replayed"] as const;

export type Phase = (typeof phases)[number];

/** Milliseconds of one part, as the clock has them, and of processor time of all processes; joining counts that with restoring. */
export interface Spent {
  readonly wallMs: number;
  readonly cpuMs: number | undefined;
}

/** The replacement of one killed actor, and of those that end with it. */
export interface Replacement {
  readonly of: "ranks" | "judge";
  /** Milliseconds from the kill until a successor could work; replay comes after. */
  readonly replacedMs: number;
  readonly parts: Readonly<Partial<Record<Phase, Spent>>>;
}

/** The moments of a replacement that is under way. */
type Open = { readonly struck: Spent & { readonly cpuMs: number } } & { [P in Phase]?: Spent };

/** Follows the replacements of killed actors by the runtime's events. A group that is struck once more counts from there. */
export class Replacements {
  readonly all: Replacement[] = [];
  /** By the group that is started again together: a model's ranks, or one judge. */
  readonly #open = new Map<string, Open>();

  constructor(runtime: Runtime) {
    runtime.on("actor.failed", ({ actor }) => {
      const open = this.#open.get(groupOf(actor));
      if (open !== undefined) open.noticed ??= now();
    });
    runtime.on("actor.restarted", ({ actor }) => {
      const open = this.#open.get(groupOf(actor));
      if (open === undefined || open.restored !== undefined) return;
      open.spawned = now();
      if (isJudge(actor)) this.#end(groupOf(actor), open);
    });
    runtime.on("run.restored", ({ model = "", joinedMs, durationMs }) => {
      const open = this.#open.get(model);
      if (open?.spawned === undefined) return;
      open.restored = now();
      open.joined = { wallMs: open.restored.wallMs + joinedMs - durationMs, cpuMs: undefined };
    });
  }

  /** An actor is about to be killed. */
  struck(actor: string): void {
    this.#open.set(groupOf(actor), { struck: now() });
  }

  /** The strike has hit nobody. */
  missed(actor: string): void {
    this.#open.delete(groupOf(actor));
  }

  /** A call of the script has its answer. */
  answered(): void {
    for (const [group, open] of this.#open) {
      if (open.restored === undefined) continue;
      open.replayed = now();
      this.#end(group, open);
    }
  }

  /** The session is over: replacements whose calls were all answered before have no replay. */
  end(): void {
    for (const [group, open] of this.#open) if (open.restored !== undefined) this.#end(group, open);
  }

  #end(group: string, open: Open): void {
    this.#open.delete(group);
    const parts: Partial<Record<Phase, Spent>> = {};
    let { wallMs, cpuMs } = open.struck;
    for (const phase of phases) {
      const moment = open[phase];
      if (moment === undefined) continue;
      const spentMs = moment.cpuMs === undefined ? undefined : moment.cpuMs - cpuMs;
      parts[phase] = { wallMs: moment.wallMs - wallMs, cpuMs: spentMs };
      wallMs = moment.wallMs;
      cpuMs += spentMs ?? 0;
    }
    const ready = open.restored ?? open.spawned;
    const replacedMs = (ready?.wallMs ?? wallMs) - open.struck.wallMs;
    this.all.push({ of: isJudge(group) ? "judge" : "ranks", replacedMs, parts });
  }
}

const isJudge = (actor: string) => actor.startsWith("judges-");

/** `frozen-1` of `frozen-1-rank-0`, nothing of `feeder`: the name of the model; a judge is its own group. */
function groupOf(actor: string): string {
  return isJudge(actor) ? actor : (/^(.*)-(?:(?:rank|shard)-\d+|feeder)$/.exec(actor)?.[1] ?? "");
}

const now = () => ({ wallMs: performance.now(), cpuMs: processorMs() });
