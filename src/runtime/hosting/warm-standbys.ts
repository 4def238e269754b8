import type { Boot } from "../actor/actor-host.ts";
import type { ThreadOptions } from "../protocol/spawn.ts";
import { ActorThread, type Warmup, type WorkerHandle } from "./thread.ts";

/**
 * Threads of this process that have loaded an actor's modules and wait to replace it: at most one per name. Most of an
 * actor's starting time goes into its modules, so that this time has passed before the thread is needed.
 */
export class WarmStandbys {
  readonly #waiting = new Map<string, ActorThread>();
  /** Names whose standby ended by itself. It is not replaced, because the same cause may end the next one. */
  readonly #lost = new Set<string>();

  /** Starts a standby thread, unless there is one or it ended by itself; returns whether it did. */
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

  /** Starts an actor on its standby, even if that is still loading, otherwise on a new thread. */
  take(boot: Boot, { resourceLimits, modules }: ThreadOptions): WorkerHandle {
    const { name } = boot.address;
    const thread =
      this.#waiting.get(name) ?? new ActorThread({ name, moduleUrls: [], resourceLimits, modules });
    this.#waiting.delete(name);
    this.#lost.delete(name);
    try {
      thread.begin(boot);
    } catch (error) {
      // Its arguments cannot be cloned: a thread that waits for others would keep the program alive.
      void thread.terminate();
      throw error;
    }
    return thread;
  }

  /** Terminates the standbys of these actors and resolves when none runs any more. */
  async close(names: readonly string[]): Promise<void> {
    const threads = names.flatMap((name) => this.#waiting.get(name) ?? []);
    for (const name of names) this.#waiting.delete(name);
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}
