import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { compileCache } from "../../errors/untrusted/index.ts";
import type { Boot } from "../actor/actor-host.ts";
import type { ThreadOptions } from "../protocol/spawn.ts";
import { portsOf } from "../transport/link.ts";
import { stackOf } from "./thread-stack.ts";
import type { ThreadStart } from "./thread-start.ts";

/** A handle to the thread or process of a running actor. */
export interface WorkerHandle {
  terminate(): Promise<void>;
  /** Returns its stack, see `stackOf`; undefined if it cannot be read. */
  stack?(): Promise<string | undefined>;
  /** Resolves with the uncaught error, if any, when nothing of it runs any more. */
  readonly exited: Promise<Error | undefined>;
}

/** Modules that a thread loads before there is an actor for it. Plain data. */
export interface Warmup extends ThreadOptions {
  /** The actor's name, and the thread's. */
  readonly name: string;
  /** Imported in this order. Errors are ignored: the actor imports the module again and fails then. */
  readonly moduleUrls: readonly string[];
}

/**
 * Size of V8's young generation, in MB. By default imports make V8 let it grow to 48 MB, which a step's garbage never needs.
 * This saves 80 MB in a run with seven threads and costs no processor time; with 6 MB a queue of 50,000 messages would cost a
 * third more.
 */
const YOUNG_MB = 12;

// Modules stay: semi-spaces that begin with 1 MB are collected again and again while they load, and copy them each time. With 3 MB a thread
// starts in four fifths of the processor time, and holds some 1 MB more. V8 reads this when a thread begins, here and in the user's own.
setFlagsFromString("--min-semi-space-size=3");

/** A thread for one actor. It loads its modules first, and runs the actor when it gets one. */
export class ActorThread implements WorkerHandle {
  readonly exited: Promise<Error | undefined>;
  readonly #worker: Worker;

  constructor({ name, moduleUrls, resourceLimits, modules }: Warmup) {
    this.#worker = new Worker(new URL("./thread-entry.ts", import.meta.url), {
      name,
      env: workerEnv(process.env),
      workerData: { moduleUrls, modules } satisfies ThreadStart,
      ...workerFlags(process.execArgv),
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, ...resourceLimits },
    });
    this.exited = this.#untilExited();
  }

  /** Starts the actor on it. Call it once. */
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
      this.#worker.on("exit", (exitCode) => {
        if (exitCode !== 0) uncaught ??= new Error(`its thread ended with exit code ${exitCode}`);
        resolve(uncaught);
      });
    });
  }
}

/**
 * Returns the environment of a worker, with Node's compile cache on. Otherwise each thread would strip and compile the same
 * modules again, which was more than half of a restart's time (95 to 41 ms of processor time when it was measured). If
 * another user could have written to the cache folder, the cache is off.
 */
export function workerEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  cache ??= { folder: compileCache(env.NODE_COMPILE_CACHE) };
  const { folder } = cache;
  if (folder !== undefined) return { ...env, NODE_COMPILE_CACHE: folder };
  return { ...env, NODE_COMPILE_CACHE: undefined, NODE_DISABLE_COMPILE_CACHE: "1" };
}

/** The folder of the compile cache, determined once for all threads. */
let cache: { readonly folder: string | undefined } | undefined;

/**
 * Returns flags for a worker. Workers inherit this process's flags, and refuse some of them if given explicitly. Only if the
 * process runs a script from the command line, the flags are cleared.
 */
export function workerFlags(execArgv: readonly string[]): { execArgv?: string[] } {
  const ofScript = ["-e", "--eval", "-p", "--print", "-pe", "--input-type"];
  return execArgv.some((flag) => ofScript.includes(flag.split("=")[0] ?? "")) ? { execArgv: [] } : {};
}
