import { describe } from "./address.ts";
import type { Connection } from "./connection.ts";
import type { DeadLetter } from "./dead-letters.ts";
import { Endpoint, type EndpointOptions } from "./endpoint.ts";
import { type Failure, fromFailure, isStopRequest, StopRequested, toFailure } from "./failure.ts";
import { Handling } from "./handling.ts";
import type { LinkEnd } from "./link.ts";
import { type Delivery, Mailbox } from "./mailbox.ts";
import type { Behavior } from "./protocol.ts";
import { type Envelope, RecordType } from "./record.ts";
import type { Resident } from "./resident.ts";
import { Stash } from "./stash.ts";
import type { StatusBoard } from "./status-board.ts";
import { systemAddress } from "./system-address.ts";

/** How a cell ended. */
export type End = { readonly kind: "stopped" } | { readonly kind: "failed"; readonly failure: Failure };

/** How the system asks an actor to stop. */
export interface StopRequest {
  readonly reason: string;
  /** Whether messages that have arrived are handled first. */
  readonly drain: boolean;
}

/** What a cell is made of. */
export interface CellOptions extends Omit<EndpointOptions, "resident"> {
  readonly systemLink: LinkEnd;
  readonly board: StatusBoard;
  readonly concurrent: readonly string[];
  /** Whether this actor has its thread to itself. */
  readonly mayBlock: boolean;
  /** Called once, after the last record has been sent. */
  onEnd(end: End): void;
  /** Called with each message this actor could not handle or send, so that what it owned can be released. */
  onUndelivered(message: unknown): void;
}

// After so many messages the event loop gets a turn, for timers and for what else this thread serves.
const messagesPerTurn = 512;

/**
 * One actor at work: takes message after message from its mailbox, one at a time unless the kind is
 * declared concurrent, until it fails or is stopped.
 */
export class Cell implements Resident {
  readonly endpoint: Endpoint;
  readonly handling: Handling;
  readonly mailbox = new Mailbox();
  readonly board: StatusBoard;
  readonly system: Connection;
  /** Kinds a blocking receive is waiting for: these do not interrupt it. */
  awaitedKinds: readonly string[] = [];
  readonly #options: CellOptions;
  readonly #stashes: Stash[] = [];
  #stopHook: ((reason: string) => unknown) | undefined;
  #stopRequest: StopRequest | undefined;
  #phase: "starting" | "running" | "ending" | "ended" = "starting";
  #isOpen = true;
  #isServing = false;
  #seenUrgent = 0;

  constructor(options: CellOptions) {
    this.#options = options;
    this.board = options.board;
    this.endpoint = new Endpoint({ ...options, resident: this });
    this.handling = new Handling({
      ...options,
      endpoint: this.endpoint,
      onFailure: (error) => this.#failUnlessStopping(error),
      onSettled: () => this.wake(),
    });
    this.system = this.endpoint.attach(systemAddress, options.systemLink);
  }

  /** Makes the actor by `create`, then serves its mailbox; a throw in it is the actor's failure. */
  async start(create: () => Promise<Behavior<unknown>> | Behavior<unknown>): Promise<void> {
    try {
      const behavior = await create();
      this.handling.adopt(behavior);
      this.#stopHook = behavior.stop?.bind(behavior);
    } catch (error) {
      if (this.#stopRequest !== undefined && isStopRequest(error)) await this.#finish();
      else this.fail(error);
      return;
    }
    if (this.#phase !== "starting") return;
    this.#phase = "running";
    const body = { address: this.endpoint.address, kinds: this.handling.kinds };
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.started, body });
    this.board.enter("idle");
    this.wake();
  }

  /** Whether this actor may block its thread. */
  get mayBlock(): boolean {
    return this.#options.mayBlock;
  }

  /** A stash of this actor's own. */
  makeStash(capacity: number): Stash {
    const stash = new Stash(capacity, {
      putAside: () => this.handling.putAside(),
      putBack: (deliveries) => {
        this.mailbox.putBack(deliveries);
        queueMicrotask(() => this.wake());
      },
    });
    this.#stashes.push(stash);
    return stash;
  }

  /** Stops this actor in order, as if the system had asked. */
  requestStop(request: StopRequest): void {
    this.#stopRequest ??= request;
    this.wake();
  }

  /** Ends this actor with an error, at once. */
  fail(error: unknown): void {
    if (this.#phase === "ended") return;
    const failure = toFailure(error, describe(this.endpoint.address));
    this.board.enter("failed");
    this.#end({ kind: "failed", failure }, { type: RecordType.failed, body: failure });
  }

  /** Cuts this actor off without its consent: nothing it does from here on reaches anyone. */
  abandon(): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.board.enter("stopped");
    this.endpoint.close();
  }

  onMessage(delivery: Delivery): void {
    // What is not taken stays on its sender's books and becomes a dead letter there when this actor is gone.
    if (!this.#isOpen) return;
    this.mailbox.put(delivery);
  }

  onSystemRecord(_from: Connection, record: Envelope): void {
    if (record.type === RecordType.stop) this.#stopRequest ??= record.body as StopRequest;
    else if (record.type === RecordType.childFailed) this.fail(fromFailure(record.body as Failure));
  }

  onDown(): void {
    queueMicrotask(() => this.wake());
  }

  requestLink(to: { readonly uid: number }): void {
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.connect, body: to });
  }

  requestDown(of: { readonly uid: number }): void {
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.watch, body: of });
  }

  forgoDown(of: { readonly uid: number }): void {
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.unwatch, body: of });
  }

  onDeadLetter(letter: DeadLetter, message: unknown): void {
    this.#options.onUndelivered(message);
    if (this.#phase === "ended") return;
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.undelivered, body: letter });
  }

  interrupt(): void {
    if (this.#stopRequest !== undefined && this.#phase !== "ending") {
      throw new StopRequested(this.#stopRequest.reason);
    }
    this.#callDowns();
    while (this.#phase === "running") {
      const delivery = this.mailbox.takeControl(this.awaitedKinds);
      if (delivery === undefined) return;
      this.handling.interruptWith(delivery);
    }
  }

  /** Sees to messages that a blocking call took in outside any handler: no packet will come to wake this cell for them. */
  wakeAfterBlocking(): void {
    if (!this.#isServing && this.mailbox.size > 0) queueMicrotask(() => this.wake());
  }

  wake(): void {
    if (this.#isServing || this.#phase !== "running") return;
    this.#isServing = true;
    try {
      this.#serve();
    } finally {
      this.#isServing = false;
    }
    const isQuiet = this.handling.isQuiet && this.mailbox.size === 0;
    if (this.#stopRequest !== undefined && isQuiet && this.#phase === "running") void this.#finish();
  }

  #serve(): void {
    for (let count = 0; this.#phase === "running"; count++) {
      if (count === messagesPerTurn) {
        setImmediate(() => this.wake());
        return;
      }
      this.#lookForUrgent();
      if (!this.handling.isBusy) this.#callDownsOrFail();
      this.#closeIfStopping();
      const next = this.handling.isBusy
        ? this.mailbox.takeKind(this.#options.concurrent)
        : this.mailbox.take();
      if (next === undefined) break;
      this.board.setQueued(this.mailbox.size);
      this.handling.handle(next);
    }
    if (this.#phase === "running" && !this.handling.isBusy) this.board.enterIdle();
  }

  /** Between two messages: control that was posted meanwhile goes first. */
  #lookForUrgent(): void {
    const urgent = this.endpoint.signal.urgentSequence;
    if (urgent === this.#seenUrgent) return;
    this.#seenUrgent = urgent;
    this.endpoint.drain();
  }

  #closeIfStopping(): void {
    if (this.#stopRequest === undefined || !this.#isOpen) return;
    if (this.#stopRequest.drain) this.endpoint.drain();
    else this.mailbox.clear();
    this.#isOpen = false;
  }

  #callDowns(): void {
    const { watches } = this.endpoint;
    while (watches.hasDue) watches.callNext();
  }

  #callDownsOrFail(): void {
    if (!this.endpoint.watches.hasDue) return;
    try {
      this.#callDowns();
    } catch (error) {
      this.fail(error);
    }
  }

  #failUnlessStopping(error: unknown): void {
    if (this.#stopRequest === undefined || !isStopRequest(error)) this.fail(error);
  }

  async #finish(): Promise<void> {
    this.#phase = "ending";
    this.board.enter("stopping");
    try {
      await this.#stopHook?.(this.#stopRequest?.reason ?? "stopped");
      await this.endpoint.connections.allReady();
    } catch (error) {
      this.fail(error);
      return;
    }
    this.board.enter("stopped");
    this.#end({ kind: "stopped" }, { type: RecordType.stopped });
  }

  #end(end: End, lastRecord: { readonly type: RecordType; readonly body?: unknown }): void {
    if (this.#phase === "ended") return;
    for (const stash of this.#stashes) {
      for (const delivery of stash.takeAll()) this.endpoint.undelivered.refused(delivery, "Stopped");
    }
    this.endpoint.connections.abandonWaiting();
    this.#phase = "ended";
    this.endpoint.outbox.sendRecord(this.system, lastRecord, true);
    this.endpoint.connections.flush();
    this.endpoint.close();
    this.#options.onEnd(end);
  }
}
