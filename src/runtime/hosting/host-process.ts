import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { TroupeError } from "../../errors.ts";
import { systemClock } from "../clock.ts";
import { mirrorBoard } from "../inspection/status-board.ts";
import type { Failure } from "../protocol/failure.ts";
import type { Hub } from "../transport/hub/hub.ts";
import { LastLines } from "./last-lines.ts";
import { endingWithParent } from "./orphan.ts";
import {
  birthVariable,
  type HostedBoot,
  type News,
  type Order,
  type ProcessBirth,
  packControl,
} from "./process-orders.ts";
import { type Warmup, type WorkerHandle, workerEnv, workerFlags } from "./thread.ts";

// A thread that does not end when it is made to, or a process that does not leave when it is empty, is ended with its process.
const patienceMs = 500;
// What a process said before its end is a matter of microseconds when its end is known.
const lastWordsMs = 50;

const processEntry = fileURLToPath(new URL("./process-entry.ts", import.meta.url));

/** A process that hosts actors, as the one that started it sees it. */
export class HostProcess {
  readonly name: string;
  readonly index: number;
  /** Resolves once it can be given orders. @throws {TroupeError} `PROCESS_START_FAILED` when it ends before */
  readonly ready: Promise<void>;
  /** Resolves when it has ended and all it said has been taken in. */
  readonly ended: Promise<void>;
  readonly #hub: Hub;
  readonly #child: ChildProcess;
  readonly #lines: LastLines;
  readonly #warmups = new Set<string>();
  readonly #workers = new Map<number, (error: Error | undefined) => void>();
  /** Copies of the boards of its actors, where the two processes share no memory; by uid. */
  readonly #boards = new Map<number, Uint8Array>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #disconnected = Promise.withResolvers<void>();
  #address = "";
  #isReady = false;
  #isLeaving = false;
  #blame: Error | undefined;

  constructor(name: string, birth: ProcessBirth, hub: Hub) {
    this.name = name;
    this.index = birth.index;
    this.ready = this.#ready.promise;
    this.ready.catch(() => {}); // told to whoever awaits it; a process may also end before anyone does
    this.#hub = hub;
    this.#lines = new LastLines(name);
    const entry = [...flags(), processEntry];
    const [command, args] = endingWithParent(process.execPath, entry);
    this.#child = spawn(command, args, {
      env: { ...workerEnv(process.env), [birthVariable]: JSON.stringify(birth) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    // Without a descriptor left there is none of them, whatever the type says; its error comes a tick later.
    const { stdout, stderr } = this.#child;
    if (stdout) this.#lines.follow(stdout, process.stdout);
    if (stderr) this.#lines.follow(stderr, process.stderr);
    this.ended = this.#untilEnded();
  }

  /** The number the operating system knows it by. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Of its door, once it is ready. */
  get address(): string {
    return this.#address;
  }

  /** Whether it can be given orders. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether it takes no more actors. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Whether no actor lives in it. */
  get isEmpty(): boolean {
    return this.#workers.size === 0;
  }

  /** Has it do something, after everything it was told before. */
  order(order: Order): void {
    this.#hub.control(this.index, packControl(order));
  }

  /** Has a thread of it load what an actor needs, where none does; returns whether it is to begin. */
  prepareStandby(warmup: Warmup): boolean {
    if (this.#warmups.has(warmup.name)) return false;
    this.#warmups.add(warmup.name);
    this.ready.then(
      () => this.order({ kind: "prepareStandby", warmup }),
      () => {}, // who does not start loads nothing, and whoever needs it is told why
    );
    return true;
  }

  /** Has it start an actor. */
  start(boot: HostedBoot): WorkerHandle {
    const { uid } = boot.address;
    const exited = new Promise<Error | undefined>((resolve) => this.#workers.set(uid, resolve));
    this.order({ kind: "start", boot });
    return { exited, terminate: () => this.#terminate(uid, exited) };
  }

  /** Keeps `copy` like the board of one of its actors, as often as the process tells of it. */
  mirror(uid: number, copy: Uint8Array): void {
    this.#boards.set(uid, copy);
  }

  /** Takes in what it says of itself. */
  hear(news: Exclude<News, { readonly kind: "corrupted" }>): void {
    if (news.kind === "ready") {
      this.#address = news.address;
      this.#hub.know(this.index, news.address);
      this.#isReady = true;
      this.#ready.resolve();
    } else if (news.kind === "boards") {
      const laterMs = systemClock.now() - news.nowMs;
      for (const [uid, board] of news.boards) {
        const copy = this.#boards.get(uid);
        if (copy !== undefined) mirrorBoard(copy, board, laterMs);
      }
    } else this.#exited(news.uid, news.failure && errorOf(news.failure));
  }

  /** It has said to another process what cannot be: none of it can be relied on. */
  corrupted(failure: Failure): void {
    this.disconnected(errorOf(failure));
  }

  /** It can be heard no more: it has ended, or must. */
  disconnected(error: Error | undefined): void {
    this.#blame ??= error;
    this.#disconnected.resolve();
    if (error === undefined) this.#endBy(patienceMs);
    else this.kill();
  }

  /** Lets it go, now that no actor lives in it. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    if (this.#isReady) this.order({ kind: "leave" });
    this.#endBy(this.#isReady ? patienceMs : 0);
    await this.ended;
  }

  /** Ends it at once. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #exited(uid: number, error: Error | undefined): void {
    const resolve = this.#workers.get(uid);
    this.#workers.delete(uid);
    this.#boards.delete(uid);
    resolve?.(error);
  }

  async #terminate(uid: number, exited: Promise<unknown>): Promise<void> {
    this.order({ kind: "terminate", uid });
    const timer = setTimeout(() => this.kill(), patienceMs);
    await exited;
    clearTimeout(timer);
  }

  #endBy(afterMs: number): void {
    const timer = setTimeout(() => this.kill(), afterMs);
    void this.ended.then(() => clearTimeout(timer));
  }

  async #untilEnded(): Promise<void> {
    const left = Promise.withResolvers<void>();
    this.#child.on("exit", left.resolve);
    this.#child.on("error", (error) => {
      this.#blame ??= error;
      left.resolve();
    });
    await left.promise;
    // Its last words come by two ways, and each of them closes behind the last.
    await within(lastWordsMs, Promise.all([untilClosed(this.#child), this.#disconnected.promise]));
    const error = this.#blame ?? this.#deathOf(this.#child);
    this.#refuse(error);
    for (const uid of [...this.#workers.keys()]) this.#exited(uid, error);
  }

  #refuse(cause: Error): void {
    this.#ready.reject(
      new TroupeError(
        "PROCESS_START_FAILED",
        {
          where: "spawn",
          expected: `process ${this.name} to start`,
          got: `its end: ${cause.message}`,
          hint: "see what it wrote",
        },
        { fields: { process: this.name }, cause },
      ),
    );
  }

  /** Without a code of ours: nobody threw this on purpose. */
  #deathOf({ pid, exitCode, signalCode }: ChildProcess): Error {
    const how = signalCode === null ? `left with exit code ${exitCode}` : `was ended by ${signalCode}`;
    const words = this.#lines.text === "" ? "" : `; it wrote last:\n${this.#lines.text}`;
    const error = new Error(`its process ${this.name} (${pid}) ${how}${words}`);
    return Object.assign(error, { code: signalCode ?? `EXIT_${exitCode}` });
  }
}

/** The flags of this process, without a script on the command line, which is none of its business. */
function flags(): readonly string[] {
  return workerFlags(process.execArgv).execArgv ?? process.execArgv;
}

/** An error as it was in its own process, with whatever code it had. */
function errorOf({ name, message, code, stack }: Failure): Error {
  const error = Object.assign(new Error(message), { name }, code === undefined ? {} : { code });
  if (stack !== undefined) error.stack = stack;
  return error;
}

async function untilClosed({ stdout, stderr }: ChildProcess): Promise<void> {
  for (const stream of [stdout, stderr]) if (stream && !stream.closed) await once(stream, "close");
}

/** Waits for `done`, but no longer than so. */
async function within(milliseconds: number, done: Promise<unknown>): Promise<void> {
  const passed = Promise.withResolvers<void>();
  const timer = setTimeout(passed.resolve, milliseconds);
  await Promise.race([done, passed.promise]);
  clearTimeout(timer);
}
