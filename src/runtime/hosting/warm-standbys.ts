import type { Boot } from "../actor/actor-host.ts";
import type { ThreadOptions } from "../protocol/spawn.ts";
import { ActorThread, type Warmup, type WorkerHandle } from "./thread.ts";

/**
 * Threads of this process that have loaded what an actor needs and wait to take its place: one for each name at most. Most
 * of the time that an actor takes to start is taken by its modules, and has passed before it is needed.
 */
export class WarmStandbys {
  readonly #waiting = new Map<string, ActorThread>();
  /** Whose standby ended by itself: what ends it once may do so as often as it is replaced. */
  readonly #lost = new Set<string>();

  /** Has a thread load what an actor needs, unless one has, or had and ended; returns whether it begins to. */
  prepareStandby(warmup: Warmup): boolean {
    const { name } = warmup;
    if (this.#waiting.has(name) || this.#lost.has(name)) return false;
    const thread = new ActorThread(warmup);
    this.#waiting.set(name, thread);
    void thread.exited.then(() => {
      if (this.#waiting.get(name) !== thread) return;
      this.#waiting.delete(name);
      this.#lost.add(name);
    });
    return true;
  }

  /** Starts an actor on the thread that waits for it, however far that has come, else on a new one. */
  take(boot: Boot, { resourceLimits, modules }: ThreadOptions): WorkerHandle {
    const { name } = boot.address;
    const thread =
      this.#waiting.get(name) ?? new ActorThread({ name, moduleUrls: [], resourceLimits, modules });
    this.#waiting.delete(name);
    this.#lost.delete(name);
    thread.begin(boot);
    return thread;
  }

  /** Resolves when none of those that wait runs any more. */
  async close(): Promise<void> {
    const threads = [...this.#waiting.values()];
    this.#waiting.clear();
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}
