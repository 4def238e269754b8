import { createHash } from "node:crypto";
import type { Runtime, Tensor } from "../../../src/entries/index.ts";
import { Chance } from "../chance.ts";
import { ActorThreads } from "../faults.ts";

/** A session, and when its actors are killed. */
export interface SessionOrder {
  readonly data: string;
  readonly cache: string;
  readonly layout: {
    readonly ranks: number;
    readonly zero?: number;
    readonly tp?: number;
    readonly pp?: number;
  };
  readonly placement: "thread" | "process";
  readonly seed: number;
  /** How often an actor is killed, each time at a random moment. */
  readonly kills: number;
}

/** The end of a session. */
export interface SessionTold {
  /** The answer of each call, in the order of the script. */
  readonly answers: readonly string[];
  /** Hash of the bits of each parameter, by name. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly numKills: number;
  readonly numRestarts: number;
  /** Milliseconds from each kill until the killed actor had a successor. */
  readonly replacedMs: readonly number[];
}

/** Mean time between two kills, in ms: a restart takes about as long. */
const MEAN_MS = 700;

/** Not the checkpointer of the policy: with it the copies in memory are lost. */
const CAST = /^(frozen-\d+-)?((rank|shard)-\d+|feeder)$|^judges-\d+$/;

/** Kills the actors of a session's runtime at random moments, and notes when each has a successor. */
export class Strikes {
  readonly #runtime: Runtime;
  readonly #order: SessionOrder;
  readonly #chance: Chance;
  readonly #threads = new ActorThreads();
  /** By actor, when it was killed. */
  readonly #killed = new Map<string, number>();
  readonly replacedMs: number[] = [];
  numKills = 0;
  numRestarts = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Call it before the runtime has actors. */
  constructor(runtime: Runtime, order: SessionOrder) {
    this.#runtime = runtime;
    this.#order = order;
    this.#chance = new Chance(order.seed);
    runtime.on("actor.restarted", ({ actor, role }) => {
      if (role === "feeder") this.numRestarts += 1;
      const at = this.#killed.get(actor);
      if (at !== undefined) this.replacedMs.push(performance.now() - at);
      this.#killed.delete(actor);
    });
  }

  /** Begins, once everything is there. */
  begin(): void {
    if (this.numKills < this.#order.kills)
      this.#timer = setTimeout(() => this.#strike(), this.#chance.wait(MEAN_MS));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#threads[Symbol.dispose]();
  }

  #strike(): void {
    const victim = this.#kill();
    if (victim !== undefined) {
      this.numKills += 1;
      this.#killed.set(victim, performance.now());
    }
    this.begin();
  }

  /** @returns the name of the killed actor: an actor of the process, if that was killed */
  #kill(): string | undefined {
    if (this.#order.placement === "thread") return this.#threads.endOne(this.#chance, CAST);
    const living = this.#runtime
      .inspect()
      .filter(({ pid, actor }) => /rank-\d+$|^judges-\d+$/.test(actor) && pid !== process.pid);
    if (living.length === 0) return undefined;
    const { pid, actor } = this.#chance.pick(living);
    try {
      return process.kill(pid, "SIGKILL") ? actor : undefined;
    } catch {
      return undefined; // it has ended meanwhile
    }
  }
}

/** The end of a session, once all its calls are answered. */
export async function toldOf(
  answers: readonly Promise<string>[],
  parameters: Readonly<Record<string, Tensor>>,
  { numKills, numRestarts, replacedMs }: Strikes,
): Promise<SessionTold> {
  const hashes = Object.entries(parameters).map(([name, tensor]) => [name, hashOf(bitsOf(tensor))]);
  return {
    answers: await Promise.all(answers),
    parameters: Object.fromEntries(hashes),
    numKills,
    numRestarts,
    replacedMs,
  };
}

/** The bits of a tensor, in hexadecimal digits. */
export const bitsOf = (tensor: Tensor) => Buffer.from(tensor.toTypedArray().buffer.slice(0)).toString("hex");

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
