import { describe } from "./address.ts";
import type { Connection } from "./connection.ts";
import type { DeadLetter } from "./dead-letters.ts";
import { Endpoint, type EndpointOptions, type Resident } from "./endpoint.ts";
import { type Down, type Failure, isStopRequest, StopRequested, toFailure } from "./failure.ts";
import type { LinkEnd } from "./link.ts";
import { type Delivery, Mailbox } from "./mailbox.ts";
import type { Behavior } from "./protocol.ts";
import { type Envelope, RecordType } from "./record.ts";
import type { StatusBoard } from "./status-board.ts";
import { systemAddress } from "./system-address.ts";
import type { OnDown } from "./watches.ts";

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

type AnyHandler = (message: unknown) => unknown;

// After so many messages the event loop gets a turn, for timers and for what else this thread serves.
const messagesPerTurn = 512;

/**
 * One actor at work: takes message after message from its mailbox, one at a time unless the kind is
 * declared concurrent, and answers, fails or stops.
 */
export class Cell implements Resident {
  readonly endpoint: Endpoint;
  readonly mailbox = new Mailbox();
  readonly board: StatusBoard;
  readonly system: Connection;
  readonly #options: CellOptions;
  readonly #handlers = new Map<string, AnyHandler>();
  #kinds: readonly string[] = [];
  #stopHook: ((reason: string) => unknown) | undefined;
  #stopRequest: StopRequest | undefined;
  #phase: "starting" | "running" | "ending" | "ended" = "starting";
  #closedToMessages = false;
  #downs: { readonly onDown: OnDown; readonly down: Down }[] = [];
  #running = false;
  #busy = false;
  #numConcurrent = 0;
  #current: Delivery | undefined;
  #seenUrgent = 0;

  constructor(options: CellOptions) {
    this.#options = options;
    this.board = options.board;
    this.endpoint = new Endpoint({ ...options, resident: this });
    this.system = this.endpoint.attach(systemAddress, options.systemLink);
  }

  /** Makes the actor by `create`, then serves its mailbox; a throw in it is the actor's failure. */
  async start(create: () => Promise<Behavior<unknown>> | Behavior<unknown>): Promise<void> {
    try {
      const behavior = await create();
      this.#adopt(behavior);
    } catch (error) {
      if (this.#stopRequest !== undefined && isStopRequest(error)) await this.#finish();
      else this.fail(error);
      return;
    }
    if (this.#phase !== "starting") return;
    this.#phase = "running";
    const body = { address: this.endpoint.address, kinds: this.#kinds };
    this.endpoint.sendRecord(this.system, { type: RecordType.started, body });
    this.board.enter("idle");
    this.wake();
  }

  /** Whether this actor may block its thread. */
  get mayBlock(): boolean {
    return this.#options.mayBlock;
  }

  /** The message being handled, where handlers run one at a time. */
  get current(): Delivery | undefined {
    return this.#current;
  }

  /** Position of `kind` among this actor's kinds, as the status board names it. */
  kindIndex(kind: string): number {
    return this.#kinds.indexOf(kind);
  }

  /** Stops this actor in order, as if the system had asked. */
  requestStop(request: StopRequest): void {
    this.#stopRequest ??= request;
    this.wake();
  }

  /** Ends this actor with an error, at once. */
  fail(error: unknown): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.board.enter("failed");
    const failure = toFailure(error, describe(this.endpoint.address));
    this.#end({ kind: "failed", failure }, { type: RecordType.failed, body: failure });
  }

  onMessage(delivery: Delivery): void {
    // What is not taken stays on its sender's books and becomes a dead letter there when this actor is gone.
    if (this.#closedToMessages) return;
    this.mailbox.put(delivery);
    this.board.setQueued(this.mailbox.size);
  }

  onSystemRecord(_from: Connection, record: Envelope): void {
    if (record.type === RecordType.stop) this.#stopRequest ??= record.body as StopRequest;
  }

  onDown(onDown: OnDown, down: Down): void {
    this.#downs.push({ onDown, down });
    if (!this.endpoint.synchronous) queueMicrotask(() => this.wake());
  }

  /** Forgets calls about this actor's end that are due but have not been made. */
  forgetDowns(actor: string, incarnation: number): void {
    this.#downs = this.#downs.filter(({ down }) => down.actor !== actor || down.incarnation !== incarnation);
  }

  requestLink(to: { readonly uid: number }): void {
    this.endpoint.sendRecord(this.system, { type: RecordType.connect, body: to });
  }

  requestDown(of: { readonly uid: number }): void {
    this.endpoint.sendRecord(this.system, { type: RecordType.watch, body: of });
  }

  onDeadLetter(letter: DeadLetter, message: unknown): void {
    this.#options.onUndelivered(message);
    if (this.#phase !== "ended")
      this.endpoint.sendRecord(this.system, { type: RecordType.undelivered, body: letter });
  }

  interrupt(): void {
    if (this.#stopRequest !== undefined && this.#phase !== "ending")
      throw new StopRequested(this.#stopRequest.reason);
    this.#callDowns();
    for (;;) {
      const delivery = this.mailbox.takeControl(this.#awaited);
      if (delivery === undefined) return;
      this.#interruptWith(delivery);
    }
  }

  /** Kinds that a blocking receive is waiting for: these do not interrupt it. */
  set awaited(kinds: readonly string[]) {
    this.#awaited = kinds;
  }
  #awaited: readonly string[] = [];

  wake(): void {
    if (this.#running || this.#phase !== "running") return;
    this.#running = true;
    try {
      this.#serve();
    } finally {
      this.#running = false;
    }
    if (this.#stopRequest !== undefined && this.#isQuiet() && this.#phase === "running") void this.#finish();
  }

  #adopt(behavior: Behavior<unknown>): void {
    for (const [kind, handler] of Object.entries(behavior.handlers))
      this.#handlers.set(kind, handler as AnyHandler);
    this.#kinds = [...this.#handlers.keys()];
    this.#stopHook = behavior.stop?.bind(behavior);
  }

  #serve(): void {
    for (let count = 0; this.#phase === "running"; count++) {
      if (count === messagesPerTurn) {
        setImmediate(() => this.wake());
        return;
      }
      this.#lookForUrgent();
      if (!this.#busy) this.#callDownsOrFail();
      this.#closeIfStopping();
      const next = this.#busy ? this.mailbox.takeKind(this.#options.concurrent) : this.mailbox.take();
      if (next === undefined) {
        if (!this.#busy) this.board.enter("idle");
        return;
      }
      this.#handle(next);
    }
  }

  /** Between two messages: control that was posted meanwhile goes first. */
  #lookForUrgent(): void {
    const urgent = this.endpoint.signal.urgentSequence;
    if (urgent === this.#seenUrgent) return;
    this.#seenUrgent = urgent;
    this.endpoint.drain();
  }

  #closeIfStopping(): void {
    if (this.#stopRequest === undefined || this.#closedToMessages) return;
    if (this.#stopRequest.drain) this.endpoint.drain();
    else this.mailbox.clear();
    this.#closedToMessages = true;
  }

  #isQuiet(): boolean {
    return !this.#busy && this.#numConcurrent === 0 && this.mailbox.size === 0;
  }

  #handle(delivery: Delivery): void {
    const handler = this.#accept(delivery);
    if (handler === undefined) return;
    const concurrent = this.#options.concurrent.includes(delivery.kind);
    if (!concurrent) this.#current = delivery;
    this.endpoint.currentTrace = delivery.trace;
    try {
      const result = handler(delivery.body);
      if (result instanceof Promise) this.#await(delivery, result, concurrent);
      else this.#succeed(delivery, result);
    } catch (error) {
      this.#handlerFailed(delivery, error);
    }
    this.endpoint.currentTrace = undefined;
  }

  /** Takes the message off the books and finds its handler, unless it came too late or to the wrong door. */
  #accept(delivery: Delivery): AnyHandler | undefined {
    this.endpoint.take(delivery);
    if (delivery.deadlineMs !== 0 && delivery.deadlineMs <= this.endpoint.clock.now()) {
      this.endpoint.refuse(delivery, "Expired");
      return undefined;
    }
    const handler = this.#handlers.get(delivery.kind);
    if (handler === undefined) {
      this.endpoint.refuseKind(delivery);
      return undefined;
    }
    this.board.enterHandling(this.#kinds.indexOf(delivery.kind), this.mailbox.size);
    return handler;
  }

  #await(delivery: Delivery, result: Promise<unknown>, concurrent: boolean): void {
    if (concurrent) this.#numConcurrent += 1;
    else this.#busy = true;
    const settled = (): void => {
      if (concurrent) this.#numConcurrent -= 1;
      else this.#busy = false;
      this.wake();
    };
    result
      .then(
        (value) => this.#succeed(delivery, value),
        (error: unknown) => this.#handlerFailed(delivery, error),
      )
      .then(settled, (error: unknown) => this.fail(error));
  }

  #succeed(delivery: Delivery, result: unknown): void {
    if (delivery.type === RecordType.ask) this.endpoint.answer(delivery, result);
    else if (delivery.type === RecordType.openStream) this.endpoint.answerStream(delivery, result);
  }

  /** Whoever asked gets the error; where nobody asked, it is this actor's own failure. */
  #handlerFailed(delivery: Delivery, error: unknown): void {
    if (delivery.type === RecordType.tell) this.#failUnlessStopping(error);
    else this.endpoint.answerFailure(delivery, toFailure(error, describe(this.endpoint.address)));
  }

  #failUnlessStopping(error: unknown): void {
    if (this.#stopRequest === undefined || !isStopRequest(error)) this.fail(error);
  }

  #interruptWith(delivery: Delivery): void {
    const handler = this.#accept(delivery);
    if (handler === undefined) return;
    try {
      const result = handler(delivery.body);
      if (result instanceof Promise) this.#await(delivery, result, true);
      else this.#succeed(delivery, result);
    } catch (error) {
      if (delivery.type === RecordType.tell) throw error;
      this.#handlerFailed(delivery, error);
    } finally {
      if (this.#current !== undefined) this.board.enter("handling", this.#kinds.indexOf(this.#current.kind));
    }
  }

  #callDowns(): void {
    for (let next = this.#downs.shift(); next !== undefined; next = this.#downs.shift())
      next.onDown(next.down);
  }

  #callDownsOrFail(): void {
    if (this.#downs.length === 0) return;
    try {
      this.#callDowns();
    } catch (error) {
      this.fail(error);
    }
  }

  async #finish(): Promise<void> {
    this.#phase = "ending";
    this.board.enter("stopping");
    try {
      await this.#stopHook?.(this.#stopRequest?.reason ?? "stopped");
      await this.endpoint.allReady();
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.#phase !== "ending") return;
    this.#phase = "ended";
    this.board.enter("stopped");
    this.#end({ kind: "stopped" }, { type: RecordType.stopped });
  }

  #end(end: End, lastRecord: { readonly type: RecordType; readonly body?: unknown }): void {
    this.endpoint.sendRecord(this.system, lastRecord, true);
    this.endpoint.flush();
    this.#options.onEnd(end);
  }
}
