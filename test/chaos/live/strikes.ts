import { createHash } from "node:crypto";
import type { Runtime, Tensor } from "../../../src/entries/index.ts";
import { Chance } from "../chance.ts";
import { ActorThreads } from "../faults.ts";
import { type Replacement, Replacements } from "./replacements.ts";

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
export interface SessionEnd {
  /** The answer of each call, in the order of the script. */
  readonly answers: readonly string[];
  /** Hash of the bits of each parameter, by name. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly numKills: number;
  readonly numRestarts: number;
  readonly replacements: readonly Replacement[];
}

/** Mean time between two kills, in ms: a restart takes about as long. */
const MEAN_MS = 700;

/** Not the checkpointer of the policy: with it the copies in memory are lost. */
const CAST = /^(frozen-\d+-)?((rank|shard)-\d+|feeder)$|^judges-\d+$/;

/** Kills the actors of a session's runtime at random moments, and notes how each is replaced. */
export class Strikes {
  readonly #runtime: Runtime;
  readonly #order: SessionOrder;
  readonly #chance: Chance;
  readonly #threads = new ActorThreads();
  readonly replacements: Replacements;
  readonly answers: Promise<string>[] = [];
  numKills = 0;
  numRestarts = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Call it before the runtime has actors. */
  constructor(runtime: Runtime, order: SessionOrder) {
    this.#runtime = runtime;
    this.#order = order;
    this.#chance = new Chance(order.seed);
    this.replacements = new Replacements(runtime);
    runtime.on("actor.restarted", ({ role, index }) => {
      if (role === "rank" && index === 0) this.numRestarts += 1;
    });
  }

  /** Notes the answer of a call. */
  note<T>(answer: Promise<T>, shown: (value: T) => unknown = (value) => value): void {
    this.answers.push(
      answer.then((value) => {
        this.replacements.answered();
        return JSON.stringify(shown(value));
      }),
    );
  }

  /** Begins, once everything is there. */
  begin(): void {
    if (this.numKills < this.#order.kills)
      this.#timer = setTimeout(() => this.#strike(), this.#chance.wait(MEAN_MS));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.replacements.end();
    this.#threads[Symbol.dispose]();
  }

  #strike(): void {
    if (this.#kill()) this.numKills += 1;
    this.begin();
  }

  /** @returns whether there was one to kill: an actor, or one of a process that is killed */
  #kill(): boolean {
    if (this.#order.placement === "thread") {
      const victim = this.#threads.endOne(this.#chance, CAST);
      if (victim !== undefined) this.replacements.struck(victim);
      return victim !== undefined;
    }
    const living = this.#runtime
      .inspect()
      .filter(({ pid, actor }) => /rank-\d+$|^judges-\d+$/.test(actor) && pid !== process.pid);
    if (living.length === 0) return false;
    const { pid, actor } = this.#chance.pick(living);
    this.replacements.struck(actor);
    try {
      return process.kill(pid, "SIGKILL");
    } catch {
      // It has ended meanwhile.
      this.replacements.missed(actor);
      return false;
    }
  }
}

/** The end of a session, once all its calls are answered. */
export async function endOf(
  { answers, numKills, numRestarts, replacements }: Strikes,
  parameters: Readonly<Record<string, Tensor>>,
): Promise<SessionEnd> {
  const hashes = Object.entries(parameters).map(([name, tensor]) => [name, hashOf(bitsOf(tensor))]);
  return {
    answers: await Promise.all(answers),
    parameters: Object.fromEntries(hashes),
    numKills,
    numRestarts,
    replacements: replacements.all,
  };
}

/** The bits of a tensor, in hexadecimal digits. */
export const bitsOf = (tensor: Tensor) => Buffer.from(tensor.toTypedArray().buffer.slice(0)).toString("hex");

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
