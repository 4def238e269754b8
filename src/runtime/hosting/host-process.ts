import { TroupeError } from "../../errors/index.ts";
import { systemClock } from "../clock.ts";
import { mirrorBoard } from "../inspection/status-board.ts";
import type { Failure } from "../protocol/failure.ts";
import type { Hub } from "../transport/hub/hub.ts";
import { errorOf } from "./error-of.ts";
import { packControl } from "./packed-control.ts";
import type { HostedBoot, News, Order } from "./process-orders.ts";
import { endOf, lastWordsMs, type StartedProcess } from "./started-process.ts";
import type { Warmup, WorkerHandle } from "./thread.ts";
import { within } from "./within.ts";

// How long a terminated thread or a disconnected process may take to end before its process is killed.
const patienceMs = 500;
// A process that leaves waits until its peers have read its last messages, which may take long over a slow link or on a busy
// machine.
const farewellMs = 10_000;
// A process answers within milliseconds, or after a second if native code keeps the actor's thread; a stopped process never
// does.
const stackPatienceMs = 2_000;

/** A process that hosts actors, as seen by the process that started it. */
export class HostProcess {
  readonly name: string;
  readonly index: number;
  /** Resolves once it accepts orders; rejects with `PROCESS_START_FAILED` if it ends before. */
  readonly ready: Promise<void>;
  /** Resolves when it has ended and all its messages have been received. */
  readonly ended: Promise<void>;
  /** Living processes that it has a route to. */
  readonly peers = new Set<HostProcess>();
  /** Whether it stays although no actor lives in it. The next one that starts in it sets this back. */
  isKept = false;
  readonly #hub: Hub;
  readonly #started: StartedProcess;
  readonly #warmups = new Set<string>();
  readonly #workers = new Map<number, (error: Error | undefined) => void>();
  /** Copies of the status boards of its actors by uid, if the two processes share no memory. */
  readonly #boards = new Map<number, Uint8Array>();
  /** Open requests for the stacks of its actors, by uid. */
  readonly #stacks = new Map<number, PromiseWithResolvers<string | undefined>>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #disconnected = Promise.withResolvers<void>();
  #address = "";
  #isReady = false;
  #isLeaving = false;
  #blame: Error | undefined;

  constructor(name: string, index: number, hub: Hub, started: StartedProcess) {
    this.name = name;
    this.index = index;
    this.ready = this.#ready.promise;
    this.ready.catch(() => {}); // reported to those who await it; the process may also end before any does
    this.#hub = hub;
    this.#started = started;
    this.ended = this.#untilEnded();
  }

  /** Process id on its host; undefined before it has one. */
  get pid(): number | undefined {
    return this.#started.pid;
  }

  /** Number of the host that it runs on; undefined for the host of its system. */
  get place(): number | undefined {
    return this.#started.place;
  }

  /** Address of its door, once it is ready. */
  get address(): string {
    return this.#address;
  }

  /** Whether it accepts no more actors. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Whether it accepts actors. */
  get isReady(): boolean {
    return this.#isReady && !this.#isLeaving;
  }

  /** Whether no actor lives in it. */
  get isEmpty(): boolean {
    return this.#workers.size === 0;
  }

  /** Sends it an order; orders are carried out in sequence. */
  order(order: Order): void {
    this.#hub.control(this.index, packControl(order));
  }

  /** Starts a warm standby in it, unless there is one; returns whether it did. */
  prepareStandby(warmup: Warmup): boolean {
    if (this.#warmups.has(warmup.name)) return false;
    this.#warmups.add(warmup.name);
    this.ready.then(
      () => this.order({ kind: "prepareStandby", warmup }),
      () => {}, // the failed start is reported where the process is needed
    );
    return true;
  }

  /** Starts an actor in it. */
  start(boot: HostedBoot): WorkerHandle {
    const { name, uid } = boot.address;
    this.isKept = false;
    this.#warmups.delete(name);
    const exited = new Promise<Error | undefined>((resolve) => this.#workers.set(uid, resolve));
    this.order({ kind: "start", boot });
    return { exited, terminate: () => this.#terminate(uid, exited), stack: () => this.#stackOf(uid) };
  }

  /** Updates `copy` from the board of one of its actors whenever the process reports it. */
  mirror(uid: number, copy: Uint8Array): void {
    this.#boards.set(uid, copy);
  }

  /** Handles a message of the process about itself. */
  hear(news: Exclude<News, { readonly kind: "corrupted" }>): void {
    if (news.kind === "ready") {
      this.#address = news.address;
      this.#isReady = true;
      this.#ready.resolve();
    } else if (news.kind === "boards") {
      const laterMs = systemClock.now() - news.nowMs;
      for (const [uid, board] of news.boards) {
        const copy = this.#boards.get(uid);
        if (copy !== undefined) mirrorBoard(copy, board, laterMs);
      }
    } else if (news.kind === "stack") this.#tellStack(news.uid, news.stack);
    else this.#exited(news.uid, news.failure && errorOf(news.failure));
  }

  /** Kills the process, because it sent another process an invalid frame and cannot be trusted. */
  corrupted(failure: Failure): void {
    this.disconnected(errorOf(failure));
  }

  /** Handles the end of its connection: it has ended or is made to. */
  disconnected(error: Error | undefined): void {
    this.#isLeaving = true;
    this.#blame ??= error;
    this.#disconnected.resolve();
    if (error === undefined) this.#endBy(patienceMs);
    else this.kill();
  }

  /** Ends it in order, when no actor lives in it any more. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    if (this.#isReady) this.order({ kind: "leave" });
    this.#endBy(this.#isReady ? farewellMs : 0);
    await this.ended;
  }

  kill(): void {
    this.#isLeaving = true;
    this.#started.kill();
  }

  #exited(uid: number, error: Error | undefined): void {
    const resolve = this.#workers.get(uid);
    this.#workers.delete(uid);
    this.#boards.delete(uid);
    this.#tellStack(uid, undefined);
    resolve?.(error);
  }

  async #stackOf(uid: number): Promise<string | undefined> {
    if (!this.#workers.has(uid)) return undefined;
    const asked = this.#stacks.get(uid);
    if (asked !== undefined) return await asked.promise;
    const waiting = Promise.withResolvers<string | undefined>();
    this.#stacks.set(uid, waiting);
    this.order({ kind: "stack", uid });
    await within(stackPatienceMs, waiting.promise);
    this.#tellStack(uid, undefined);
    return await waiting.promise;
  }

  #tellStack(uid: number, stack: string | undefined): void {
    this.#stacks.get(uid)?.resolve(stack);
    this.#stacks.delete(uid);
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
    const end = await this.#started.exited;
    // Its last messages come by two ways, each of which closes after its last.
    await within(lastWordsMs, Promise.all([this.#started.silent, this.#disconnected.promise]));
    const error = this.#blame ?? endOf(this.name, this.#started, end);
    this.#refuse(error);
    for (const uid of [...this.#workers.keys()]) this.#exited(uid, error);
  }

  #refuse(cause: Error): void {
    this.#ready.reject(
      new TroupeError("PROCESS_START_FAILED", {
        where: "spawn",
        expected: `process ${this.name} to start`,
        got: `its end: ${cause.message}`,
        hint: "see what it wrote",
        fields: { process: this.name },
        cause,
      }),
    );
  }
}
