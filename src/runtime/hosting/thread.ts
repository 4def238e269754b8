import { Worker } from "node:worker_threads";
import { compileCache } from "../../errors/untrusted/index.ts";
import type { Boot } from "../actor/actor-host.ts";
import type { ThreadOptions } from "../protocol/spawn.ts";
import { portsOf } from "../transport/link.ts";
import type { ThreadBirth } from "./thread-birth.ts";
import { stackOf } from "./thread-stack.ts";

/** What holds a running actor. */
export interface WorkerHandle {
  /** Ends it without its consent: the last resort. */
  terminate(): Promise<void>;
  /** Where its code is that does not come back, see `stackOf`; undefined where that cannot be seen. */
  stack?(): Promise<string | undefined>;
  /** Resolves with the uncaught error, if any, when nothing of it runs any more. */
  readonly exited: Promise<Error | undefined>;
}

/** What a thread can load before there is an actor for it. Plain data. */
export interface Warmup extends ThreadOptions {
  /** The actor's name, and the thread's. */
  readonly name: string;
  /** Imported in this order; what cannot be is imported again by the actor, and is its failure then. */
  readonly moduleUrls: readonly string[];
}

/**
 * Of V8's young generation. What a thread imports outlives it, so that V8 would let it grow to 48 MB, which a step's garbage
 * never needs: 80 MB of a run with seven threads, and no processor time. With 6 MB a queue of 50,000 messages costs a third more.
 */
const YOUNG_MB = 12;

/** A thread for one actor. It loads what it is told to first, and takes the actor on whenever that comes. */
export class ActorThread implements WorkerHandle {
  readonly exited: Promise<Error | undefined>;
  readonly #worker: Worker;

  constructor({ name, moduleUrls, resourceLimits, modules }: Warmup) {
    this.#worker = new Worker(new URL("./thread-entry.ts", import.meta.url), {
      name,
      env: workerEnv(process.env),
      workerData: { moduleUrls, modules } satisfies ThreadBirth,
      ...workerFlags(process.execArgv),
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, ...resourceLimits },
    });
    this.exited = this.#untilExited();
  }

  /** Starts the actor on it, once. */
  begin(boot: Boot): void {
    this.#worker.postMessage(boot, portsOf(boot.systemLink));
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  stack(): Promise<string | undefined> {
    return stackOf(this.#worker);
  }

  #untilExited(): Promise<Error | undefined> {
    let uncaught: Error | undefined;
    this.#worker.on("error", (error: Error) => {
      uncaught ??= error;
    });
    return new Promise((resolve) => {
      this.#worker.on("exit", (exitCode) => resolve(uncaught ?? exitError(exitCode)));
    });
  }
}

function exitError(exitCode: number): Error | undefined {
  return exitCode === 0 ? undefined : new Error(`its thread ended with exit code ${exitCode}`);
}

/**
 * Node keeps what it compiled on disk: else each thread would strip and compile the same modules again, which was
 * more than half of a restart's time (95 to 41 ms of processor time when it was measured). It keeps nothing, and reads
 * nothing, where another user could have put something there.
 */
export function workerEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  cache ??= { folder: compileCache(env.NODE_COMPILE_CACHE) };
  const { folder } = cache;
  if (folder !== undefined) return { ...env, NODE_COMPILE_CACHE: folder };
  return { ...env, NODE_COMPILE_CACHE: undefined, NODE_DISABLE_COMPILE_CACHE: "1" };
}

/** The folder of the compile cache, looked for once for all threads. */
let cache: { readonly folder: string | undefined } | undefined;

/**
 * Workers have this process's flags by themselves, and refuse to be given some of them in so many words. Only
 * those of a script on the command line are none of theirs.
 */
export function workerFlags(execArgv: readonly string[]): { execArgv?: string[] } {
  const ofScript = ["-e", "--eval", "-p", "--print", "-pe", "--input-type"];
  return execArgv.some((flag) => ofScript.includes(flag.split("=")[0] ?? "")) ? { execArgv: [] } : {};
}
