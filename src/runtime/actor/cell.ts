import type { StatusBoard } from "../inspection/status-board.ts";
import { Mailbox } from "../mailbox/mailbox.ts";
import type { Connection } from "../messaging/connection.ts";
import { Endpoint, type EndpointOptions } from "../messaging/endpoint.ts";
import type { Delivery, Resident } from "../messaging/resident.ts";
import type { OnDown } from "../messaging/watches.ts";
import { type Address, systemAddress } from "../protocol/address.ts";
import type { DeadLetter } from "../protocol/dead-letter.ts";
import { type Failure, fromFailure } from "../protocol/failure.ts";
import { type Envelope, RecordType } from "../protocol/record.ts";
import { streamKind } from "../protocol/streams.ts";
import type { LinkEnd } from "../transport/link.ts";
import type { Behavior } from "./define-actor.ts";
import { Handling } from "./handling.ts";
import { type End, Lifecycle, type StopRequest } from "./lifecycle.ts";

/** Parts of a {@link Cell}. */
export interface CellOptions extends Omit<EndpointOptions, "resident"> {
  readonly systemLink: LinkEnd;
  readonly board: StatusBoard;
  readonly concurrent: readonly string[] | "questions";
  /** Whether this actor has a thread of its own. */
  readonly mayBlock: boolean;
  /** Called once, after the last record has been sent. */
  onEnd(end: End): void;
  /** Called with each message that this actor could not handle or send, so that resources in it can be released. */
  onUndelivered(message: unknown): void;
}

// After this many messages the event loop gets a turn, for timers and for other work of this thread.
const messagesPerTurn = 512;

/** A running actor: handles the messages of its mailbox, one at a time unless the kind is declared concurrent, until it ends. */
export class Cell implements Resident {
  readonly endpoint: Endpoint;
  readonly handling: Handling;
  readonly mailbox = new Mailbox<Delivery>();
  readonly board: StatusBoard;
  readonly system: Connection;
  readonly lifecycle: Lifecycle;
  /** Kinds a blocking receive is waiting for: these do not interrupt it. */
  awaitedKinds: readonly string[] = [];
  readonly #options: CellOptions;
  /** Kinds that are handled while a handler awaits. */
  readonly #concurrent: readonly string[];
  /** Whether messages that arrive now are handled before it stops. */
  #isOpen = true;
  #isServing = false;
  #seenUrgent = 0;

  constructor(options: CellOptions) {
    const { board, concurrent } = options;
    this.#options = options;
    this.#concurrent = [
      ...(concurrent === "questions" ? [] : concurrent),
      streamKind.nextConcurrent,
      streamKind.end,
    ];
    this.board = board;
    this.endpoint = new Endpoint({ ...options, resident: this });
    this.handling = new Handling({
      ...options,
      endpoint: this.endpoint,
      onFailure: (error) => {
        if (!this.lifecycle.isUnwinding(error)) this.lifecycle.fail(error);
      },
      onSettled: () => this.wake(),
    });
    this.system = this.endpoint.attach(systemAddress, options.systemLink);
    this.lifecycle = new Lifecycle({
      endpoint: this.endpoint,
      system: this.system,
      board,
      onEnd: (end) => options.onEnd(end),
    });
  }

  /** Makes the actor by `create`, then serves its mailbox. If `create` throws, the actor has failed. */
  async start(create: () => Promise<Behavior<unknown>> | Behavior<unknown>): Promise<void> {
    try {
      const behavior = await create();
      this.handling.adopt(behavior);
      this.lifecycle.begin(behavior, this.handling.kinds);
    } catch (error) {
      if (this.lifecycle.isUnwinding(error)) await this.lifecycle.finish();
      else this.lifecycle.fail(error);
    }
    this.wake();
  }

  /** Whether this actor may block its thread. */
  get mayBlock(): boolean {
    return this.#options.mayBlock;
  }

  /** Stops this actor in order, as at the system's request. */
  requestStop(request: StopRequest): void {
    this.lifecycle.requestStop(request);
    this.wake();
  }

  onMessage(delivery: Delivery): void {
    // A message that is not taken stays under way at its sender, and becomes a dead letter there when this actor has ended.
    if (!this.#isOpen) return;
    this.mailbox.put(delivery);
  }

  onSystemRecord(_from: Connection, record: Envelope): void {
    if (record.type === RecordType.stop) this.lifecycle.requestStop(record.body as StopRequest);
    else if (record.type === RecordType.childFailed) this.lifecycle.fail(fromFailure(record.body as Failure));
    else if (record.type === RecordType.probe) this.board.enterProbe(record.body as number);
  }

  onDown(): void {
    queueMicrotask(() => this.wake());
  }

  onPeerEnded(uid: number): void {
    this.handling.readerEnded(uid);
  }

  requestLink(to: { readonly uid: number }): void {
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.connect, body: to });
  }

  requestDown(of: Address): void {
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.watch, body: of });
  }

  /** Calls `onDown` once, when the first of the actors ends that this actor's supervisor started together with it. */
  watchSiblings(onDown: OnDown): void {
    this.endpoint.watches.addSiblings(onDown);
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.watchSiblings });
  }

  forgoDown(of: { readonly uid: number }): void {
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.unwatch, body: of });
  }

  onDeadLetter(letter: DeadLetter, message: unknown): void {
    this.#options.onUndelivered(message);
    if (this.lifecycle.hasEnded) return;
    this.endpoint.outbox.sendRecord(this.system, { type: RecordType.undelivered, body: letter });
  }

  interrupt(): void {
    this.lifecycle.checkStop();
    this.#callDowns();
    while (this.lifecycle.isRunning) {
      const delivery = this.mailbox.takeControl(this.awaitedKinds);
      if (delivery === undefined) return;
      this.handling.interruptWith(delivery);
    }
  }

  /** Handles messages that a blocking call received outside any handler: no packet will arrive to wake this cell for them. */
  wakeAfterBlocking(): void {
    if (!this.#isServing && this.mailbox.size > 0) queueMicrotask(() => this.wake());
  }

  wake(): void {
    if (this.#isServing || !this.lifecycle.isRunning) return;
    this.#isServing = true;
    try {
      this.#serve();
    } finally {
      this.#isServing = false;
    }
    const isQuiet = this.handling.isQuiet && this.mailbox.size === 0;
    if (this.lifecycle.stopRequest !== undefined && isQuiet && this.lifecycle.isRunning)
      void this.lifecycle.finish();
  }

  #serve(): void {
    for (let count = 0; this.lifecycle.isRunning; count++) {
      if (count === messagesPerTurn) {
        setImmediate(() => this.wake());
        return;
      }
      this.#lookForUrgent();
      if (!this.handling.isBusy) this.#callDownsOrFail();
      this.#closeIfStopping();
      const next = this.handling.isBusy ? this.mailbox.takeKind(this.#concurrent) : this.mailbox.take();
      if (next === undefined) break;
      this.board.setQueued(this.mailbox.size);
      this.handling.handle(next);
    }
    if (this.lifecycle.isRunning && !this.handling.isBusy) this.board.enterIdle();
  }

  /** Receives control messages that were posted since the last message, so that they go first. */
  #lookForUrgent(): void {
    const urgent = this.endpoint.signal.urgentSequence;
    if (urgent === this.#seenUrgent) return;
    this.#seenUrgent = urgent;
    this.endpoint.drain();
  }

  #closeIfStopping(): void {
    const { stopRequest } = this.lifecycle;
    if (stopRequest === undefined || !this.#isOpen) return;
    if (stopRequest.drain) this.endpoint.drain();
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
      this.lifecycle.fail(error);
    }
  }
}
