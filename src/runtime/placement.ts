import { tmpdir } from "node:os";
import { join } from "node:path";
import { MessagePort, type ResourceLimits, Worker } from "node:worker_threads";
import { type Boot, hostActor } from "./actor-host.ts";
import type { Cell } from "./cell.ts";
import type { Clock } from "./clock.ts";
import type { HostProcess } from "./host-process.ts";
import type { LinkEnd } from "./link.ts";
import { MemoryLink } from "./memory-link.ts";
import { portLinkEnds } from "./port-link.ts";
import type { Signal } from "./signal.ts";

/** Where an actor lives: on a thread of its own, here or in another process, or on the main thread beside the system. */
export type Placement = "thread" | "main" | "process";

/** What holds a running actor. */
export interface Vessel {
  /** Ends it without its consent: the last resort. */
  terminate(): Promise<void>;
  /** Resolves with the uncaught error, if any, when nothing of it runs any more. */
  readonly exited: Promise<Error | undefined>;
}

/** How a thread is started. */
export interface ThreadOptions {
  readonly resourceLimits?: ResourceLimits | undefined;
}

/**
 * Both ends of a link between two actors of this process, given where they live and their doorbells.
 * @param strict - whether a link within one thread refuses what one between threads would
 */
export function linkBetween(left: LinkPlace, right: LinkPlace, strict: boolean): [LinkEnd, LinkEnd] {
  if (left.placement === "thread" || right.placement === "thread")
    return portLinkEnds(left.signal, right.signal);
  const [leftEnd, rightEnd] = MemoryLink.pair(strict);
  return [
    { kind: "memory", link: leftEnd },
    { kind: "memory", link: rightEnd },
  ];
}

/** An end of a link to be made. */
export interface LinkPlace {
  readonly placement: Placement;
  /** Of its thread; without meaning where that is in another process. */
  readonly signal: Signal;
  /** The process it lives in, where that is another. */
  readonly host?: HostProcess | undefined;
}

/** Starts an actor of this process where it is to live. */
export function startVessel(placement: Placement, boot: Boot, clock: Clock, options: ThreadOptions): Vessel {
  return placement === "thread" ? startThread(boot, options) : startOnMain(boot, clock);
}

/** Starts an actor on a thread of its own. */
export function startThread(boot: Boot, options: ThreadOptions): Vessel {
  const worker = new Worker(entryUrl("thread-entry"), {
    name: boot.address.name,
    env: workerEnv(process.env),
    workerData: boot,
    transferList: portsOf(boot.systemLink),
    ...workerFlags(process.execArgv),
    ...(options.resourceLimits === undefined ? {} : { resourceLimits: options.resourceLimits }),
  });
  let uncaught: Error | undefined;
  worker.on("error", (error: Error) => {
    uncaught ??= error;
  });
  const exited = new Promise<Error | undefined>((resolve) => {
    worker.on("exit", (exitCode) => resolve(uncaught ?? exitError(exitCode)));
  });
  return { exited, terminate: async () => void (await worker.terminate()) };
}

function startOnMain(boot: Boot, clock: Clock): Vessel {
  const exited = Promise.withResolvers<undefined>();
  let cell: Cell | undefined;
  const onCell = (made: Cell): void => {
    cell = made;
  };
  void hostActor(boot, { clock, onCell, onEnd: () => exited.resolve(undefined) });
  return {
    exited: exited.promise,
    terminate: () => {
      cell?.abandon();
      exited.resolve(undefined);
      return exited.promise.then(() => {});
    },
  };
}

function exitError(exitCode: number): Error | undefined {
  return exitCode === 0 ? undefined : new Error(`its thread ended with exit code ${exitCode}`);
}

/** The port that has to be transferred with a link's end, where it has one. */
export function portsOf(end: LinkEnd): MessagePort[] {
  if (end.kind === "port") return [end.port];
  return end.kind === "packed" && end.pipe instanceof MessagePort ? [end.pipe] : [];
}

/** An entry beside this file: `.ts` in the sources, `.js` once published. */
export function entryUrl(name: "thread-entry" | "process-entry"): URL {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return new URL(`./${name}.${extension}`, import.meta.url);
}

/**
 * Node keeps what it compiled on disk: else each thread would strip and compile the same modules again, which was
 * more than half of a restart's time (95 to 41 ms of processor time when it was measured).
 */
export function workerEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"), ...env };
}

/**
 * Workers have this process's flags by themselves, and refuse to be given some of them in so many words. Only
 * those of a script on the command line are none of theirs.
 */
export function workerFlags(execArgv: readonly string[]): { execArgv?: string[] } {
  const ofScript = ["-e", "--eval", "-p", "--print", "-pe", "--input-type"];
  return execArgv.some((flag) => ofScript.includes(flag.split("=")[0] ?? "")) ? { execArgv: [] } : {};
}
