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

// A thread that does not end when it is made to, or a process that nobody hears any more, is ended with its process.
const patienceMs = 500;
// A process that leaves waits until its peers have read what it said last, over a slow link and on a busy machine too.
const farewellMs = 10_000;
// It answers in some milliseconds, or after a second where native code keeps the actor's thread; one that is stopped never does.
const stackPatienceMs = 2_000;

/** A process that hosts actors, as the one that started it sees it. */
export class HostProcess {
  readonly name: string;
  readonly index: number;
  /** Resolves once it can be given orders. @throws {TroupeError} `PROCESS_START_FAILED` when it ends before */
  readonly ready: Promise<void>;
  /** Resolves when it has ended and all it said has been taken in. */
  readonly ended: Promise<void>;
  /** Those that a route leads to from it, and that have not ended. */
  readonly peers = new Set<HostProcess>();
  readonly #hub: Hub;
  readonly #started: StartedProcess;
  readonly #warmups = new Set<string>();
  readonly #workers = new Map<number, (error: Error | undefined) => void>();
  /** Copies of the boards of its actors, where the two processes share no memory; by uid. */
  readonly #boards = new Map<number, Uint8Array>();
  /** Who waits to be told where an actor's code is; by uid. */
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
    this.ready.catch(() => {}); // told to whoever awaits it; a process may also end before anyone does
    this.#hub = hub;
    this.#started = started;
    this.ended = this.#untilEnded();
  }

  /** The number that the operating system of its host knows it by. */
  get pid(): number | undefined {
    return this.#started.pid;
  }

  /** The host that it runs on; undefined for that of its system. */
  get place(): number | undefined {
    return this.#started.place;
  }

  /** Of its door, once it is ready. */
  get address(): string {
    return this.#address;
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
    return { exited, terminate: () => this.#terminate(uid, exited), stack: () => this.#stackOf(uid) };
  }

  /** Keeps `copy` like the board of one of its actors, as often as the process tells of it. */
  mirror(uid: number, copy: Uint8Array): void {
    this.#boards.set(uid, copy);
  }

  /** Takes in what it says of itself. */
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
    this.#endBy(this.#isReady ? farewellMs : 0);
    await this.ended;
  }

  /** Ends it at once. */
  kill(): void {
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
    // Its last words come by two ways, and each of them closes behind the last.
    await within(lastWordsMs, Promise.all([this.#started.silent, this.#disconnected.promise]));
    const error = this.#blame ?? endOf(this.name, this.#started, end);
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
}
