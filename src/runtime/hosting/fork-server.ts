import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ForkSupport } from "../transport/link-opener.ts";
import { LastLines } from "./last-lines.ts";
import { type ProcessStart, startVariable } from "./process-orders.ts";
import {
  type ProcessEnd,
  processArguments,
  processEnv,
  type StartedProcess,
  startProcess,
} from "./started-process.ts";

/** A process that has begun, and its end. */
interface Forked {
  readonly pid: number;
  readonly exited: Promise<ProcessEnd>;
}

/**
 * A process that has loaded native libraries and forks the processes of a pool, as Python's `forkserver` does: they begin within 0.1 s, where
 * loading libtorch takes 0.4 s. Where it cannot be had, or has ended, processes are started by themselves.
 */
export class ForkServer {
  readonly #server: ChildProcess;
  /** False where it cannot fork. */
  readonly #ready = Promise.withResolvers<boolean>();
  /** Requests without an answer, in order. */
  readonly #requests: ((forked: Forked | undefined) => void)[] = [];
  readonly #running = new Map<number, (end: ProcessEnd) => void>();

  constructor({ library, addon }: ForkSupport) {
    const preloaded = [library, ...(process.env.LD_PRELOAD ? [process.env.LD_PRELOAD] : [])].join(":");
    this.#server = spawn(process.execPath, processArguments(), {
      env: { ...processEnv(), LD_PRELOAD: preloaded, TROUPE_FORK_SERVER: addon },
      stdio: ["pipe", "pipe", "ignore"],
    });
    const { stdin, stdout } = this.#server;
    stdin?.on("error", () => {}); // it has ended, which is reported
    if (stdout) createInterface({ input: stdout }).on("line", (line) => this.#hear(line));
    this.#server.on("error", () => this.#ended());
    this.#server.on("exit", () => this.#ended());
    // The outputs of its processes keep this one from ending.
    for (const each of [this.#server, stdin, stdout] as (ChildProcess | Socket | null)[]) each?.unref();
  }

  /**
   * Starts a process, as `startProcess` does.
   * @param onBegun - called with its id once it has one
   */
  start(name: string, start: ProcessStart, onBegun?: (pid: number) => void): StartedProcess {
    const begun = this.#fork(name, start).then((forked) => forked ?? startProcess(name, start));
    void begun.then(({ pid }) => pid !== undefined && onBegun?.(pid));
    return arriving(begun);
  }

  /** Ends the server, all of whose processes have ended. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#server.ref();
    this.#server.kill("SIGKILL");
    await once(this.#server, "exit");
  }

  get #isOver(): boolean {
    const { pid, exitCode, signalCode } = this.#server;
    return pid === undefined || exitCode !== null || signalCode !== null;
  }

  async #fork(name: string, start: ProcessStart): Promise<StartedProcess | undefined> {
    const path = join(start.folder, `p${start.index}-output`);
    const lines = new LastLines(name);
    const outputs = new Outputs(lines);
    const canFork = (await outputs.listen(path)) && (await this.#ready.promise);
    if (!canFork || this.#isOver) return outputs.close();
    const env = Object.entries({ ...processEnv(), [startVariable]: JSON.stringify(start) });
    const variables = env.flatMap(([key, value]) => (value === undefined ? [] : `${key}=${value}`));
    const forked = await this.#request([path, process.cwd(), ...variables]);
    if (forked === undefined) return outputs.close();
    const { pid, exited } = forked;
    void exited.then(() => outputs.close());
    return {
      place: undefined,
      pid,
      exited,
      silent: outputs.silent,
      get lastLines() {
        return lines.text;
      },
      kill: () => {
        if (this.#running.has(pid)) kill(pid);
      },
    };
  }

  #request(strings: readonly string[]): Promise<Forked | undefined> {
    const text = Buffer.from(strings.map((each) => `${each}\0`).join(""));
    const size = Buffer.alloc(4);
    size.writeUInt32LE(text.length);
    return new Promise((resolve) => {
      this.#requests.push(resolve);
      this.#server.stdin?.write(Buffer.concat([size, text]));
    });
  }

  #hear(line: string): void {
    const [what, ...numbers] = line.split(" ");
    const [pid = -1, status = -1, signal = -1] = numbers.map(Number);
    if (what === "ready") this.#ready.resolve(true);
    else if (what === "began") this.#begun(pid);
    else
      this.#end(pid, { exitCode: status < 0 ? null : status, signalCode: signalNames.get(signal) ?? null });
  }

  #begun(pid: number): void {
    const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
    if (pid > 0) this.#running.set(pid, resolve);
    this.#requests.shift()?.(pid > 0 ? { pid, exited: promise } : undefined);
  }

  #end(pid: number, end: ProcessEnd): void {
    this.#running.get(pid)?.(end);
    this.#running.delete(pid);
  }

  /** Nobody else would notice the ends of its processes: they end with it. */
  #ended(): void {
    this.#ready.resolve(false);
    for (const resolve of this.#requests.splice(0)) resolve(undefined);
    for (const pid of this.#running.keys()) {
      kill(pid);
      this.#end(pid, { exitCode: null, signalCode: "SIGKILL" });
    }
  }
}

/** Ends a process, unless it has ended and only the news of that is still to come. */
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** By number; where a signal has two names, its first. */
const signalNames = new Map(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

/** The standard output and error of a process that connects to them, in this order. */
class Outputs {
  /** Resolves when both have ended and no more are awaited. */
  readonly silent: Promise<void>;
  readonly #server: Server;

  constructor(lines: LastLines) {
    const sinks = [process.stdout, process.stderr];
    this.#server = createServer((socket) => {
      socket.on("error", () => {}); // how the process ended is reported by the server
      const sink = sinks.shift();
      if (sink === undefined) socket.destroy();
      else lines.follow(socket, sink);
    });
    this.silent = new Promise((resolve) => this.#server.once("close", () => resolve()));
  }

  /** @returns whether it listens at the path */
  listen(path: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#server.once("error", () => resolve(false));
      this.#server.listen(path, () => resolve(true));
    });
  }

  /** Awaits no more connections. */
  close(): undefined {
    this.#server.close();
  }
}

/** A process that is about to begin; if it is killed before, it has ended at once. */
function arriving(begun: Promise<StartedProcess>): StartedProcess {
  const killed = Promise.withResolvers<ProcessEnd>();
  let present: StartedProcess | undefined;
  let isKilled = false;
  void begun.then((process) => {
    present = process;
    if (isKilled) process.kill();
  });
  return {
    place: undefined,
    get pid() {
      return present?.pid;
    },
    exited: Promise.race([killed.promise, begun.then(({ exited }) => exited)]),
    silent: Promise.race([killed.promise.then(() => {}), begun.then(({ silent }) => silent)]),
    get lastLines() {
      return present?.lastLines ?? "";
    },
    kill: () => {
      isKilled = true;
      if (present === undefined) killed.resolve({ exitCode: null, signalCode: "SIGKILL" });
      else present.kill();
    },
  };
}
