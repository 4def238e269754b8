import { TroupeError } from "../errors.ts";
import type { AskOptions, Sender, StreamOptions, TellOptions } from "./actor-ref.ts";
import { type Address, describe } from "./address.ts";
import { Asks, type Settle } from "./asks.ts";
import type { Clock } from "./clock.ts";
import { type CodecSet, deepFreeze } from "./codec.ts";
import type { Connection } from "./connection.ts";
import { Connections } from "./connections.ts";
import type { DeadLetterReason } from "./dead-letters.ts";
import { ActorDown, type Down, toFailure } from "./failure.ts";
import { Incoming } from "./incoming.ts";
import type { Outgoing } from "./lane-sender.ts";
import { laneIndex, laneOf } from "./ledger.ts";
import type { Link, LinkEnd } from "./link.ts";
import type { LinkOpener } from "./link-opener.ts";
import type { Delivery } from "./mailbox.ts";
import { blankRecord, type Packet } from "./packet.ts";
import { RecordType } from "./record.ts";
import type { Resident } from "./resident.ts";
import { connectionLimits, type MessagingSettings } from "./settings.ts";
import type { Signal } from "./signal.ts";
import { Streams } from "./streams.ts";
import type { Tracer } from "./tracer.ts";
import { Undelivered } from "./undelivered.ts";
import { type OnDown, Watches } from "./watches.ts";

/** What an endpoint is made of. */
export interface EndpointOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  /** Undefined where tracing is off. */
  readonly tracer: Tracer | undefined;
  readonly resident: Resident;
  readonly opener: LinkOpener;
}

// Enough to spare most events of a burst; few enough that the first message does not wait for long.
const packetsPerEvent = 64;

/** Where one actor sends and receives: its connections, open questions, streams and watches. */
export class Endpoint implements Sender {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  readonly asks: Asks;
  readonly streams: Streams;
  readonly watches = new Watches();
  readonly #tracer: Tracer | undefined;
  readonly #opener: LinkOpener;
  readonly #resident: Resident;
  readonly #undelivered: Undelivered;
  readonly #incoming: Incoming;
  readonly #connections: Connections;

  constructor(options: EndpointOptions) {
    this.address = options.address;
    this.clock = options.clock;
    this.signal = options.signal;
    this.codecs = options.codecs;
    this.settings = options.settings;
    this.asks = new Asks(options.clock);
    this.streams = new Streams(this);
    this.#tracer = options.tracer;
    this.#opener = options.opener;
    this.#resident = options.resident;
    this.#undelivered = new Undelivered({
      address: options.address,
      asks: this.asks,
      streams: this.streams,
      endOf: (uid) => this.watches.endOf(uid),
      sendFailure: (to, id, kind, failure) => this.#sendAnswer(to, RecordType.failure, id, kind, failure),
      report: (letter, message) => options.resident.onDeadLetter(letter, message),
    });
    this.#incoming = new Incoming(this, options.resident, this.#undelivered);
    this.#connections = new Connections(connectionLimits(options.settings), this.#undelivered);
  }

  tell(to: Address, kind: string, message: unknown, options?: TellOptions): boolean {
    return this.#sendMessage(to, this.#message(to, RecordType.tell, 0, kind, 0, message, options));
  }

  ask(to: Address, kind: string, message: unknown, options: AskOptions): Promise<unknown> {
    const deadlineMs = this.clock.now() + options.deadlineMs;
    return new Promise((resolve, reject) =>
      this.openAsk(to, kind, message, options, deadlineMs, { resolve, reject }),
    );
  }

  /** Sends a question whose answer goes to `settle`; `deadlineMs` on this clock, the very moment at which it expires. */
  openAsk(
    to: Address,
    kind: string,
    message: unknown,
    options: AskOptions,
    deadlineMs: number,
    settle: Settle,
  ): void {
    checkDeadline(`ask ${describe(to)}.${kind}`, options.deadlineMs);
    const id = this.asks.enter({ target: to, kind, deadlineMs, allowedMs: options.deadlineMs, settle });
    this.#sendMessage(to, this.#message(to, RecordType.ask, id, kind, deadlineMs, message, options));
  }

  stream(
    to: Address,
    kind: string,
    message: unknown,
    options: StreamOptions,
  ): AsyncIterableIterator<unknown> {
    checkDeadline(`stream ${describe(to)}.${kind}`, options.deadlineMs);
    const send = (id: number): void => {
      const record = this.#message(to, RecordType.openStream, id, kind, 0, message, options);
      this.#sendMessage(to, { ...record, body: [record.body, options.credits] });
    };
    return this.streams.open(to, kind, send, options);
  }

  async ready(to: Address): Promise<void> {
    await this.#connections.get(to.uid)?.ready();
  }

  /** Sends plain data by the telemetry lane. */
  emit(to: Connection, type: RecordType, event: unknown): void {
    const body = this.codecs.encode(event);
    const isEncoded = body !== event;
    to.send({ ...blankRecord, type, lane: laneIndex.telemetry, kind: "telemetry", body, isEncoded });
    this.#connections.markDirty(to);
  }

  /** Makes sure that a link to this actor exists or is asked for; undefined when the actor has ended. */
  connect(to: Address): Connection | undefined {
    const existing = this.#connections.get(to.uid);
    if (existing !== undefined) return existing;
    if (this.watches.endOf(to.uid) !== undefined) return undefined;
    const connection = this.#connections.create(to);
    this.#resident.requestLink(to);
    return connection.closed ? undefined : connection;
  }

  /** Opens this actor's end of a link to `peer`. */
  attach(peer: Address, end: LinkEnd): Connection {
    const connection = this.#connections.get(peer.uid) ?? this.#connections.create(peer);
    const link = this.#opener.open(end);
    connection.open(link);
    link.listen(
      (packet) => this.#onPacket(connection, link, packet),
      () => this.#undelivered.garbled(connection),
    );
    this.#connections.markDirty(connection);
    return connection;
  }

  /** Calls `onDown` once when that actor has ended, also when it has already. */
  watch(of: Address, onDown: OnDown): void {
    if (this.watches.add(of.uid, onDown)) this.#resident.onDown();
    else this.#resident.requestDown(of);
  }

  /** Takes back every watch on that actor, even if its end is known and has not been told. */
  unwatch(of: Address): void {
    if (this.watches.remove(of.uid)) this.#resident.forgoDown(of);
  }

  /**
   * Takes in that an actor has ended: what it still sent is received first, then what it never took becomes
   * dead letters, and questions, streams and watches hear of it. Returns how many of those there were.
   */
  ended(uid: number, down: Down): number {
    if (this.watches.endOf(uid) !== undefined) return 0;
    const connection = this.#connections.get(uid);
    if (connection !== undefined) this.#connections.drainOne(connection, this.#incoming.accept);
    const numWatches = this.watches.ended(uid, down);
    this.#connections.remove(uid);
    connection?.close();
    const numAsks = this.asks.rejectAllTo(
      uid,
      ({ target, kind }) => new ActorDown(`${describe(target)}.${kind}`, down),
    );
    const numStreams = this.streams.targetDown(uid, down);
    for (let left = numWatches; left > 0; left--) this.#resident.onDown();
    return numWatches + numAsks + numStreams;
  }

  /** Sends one of the runtime's own records, whose body is plain data. */
  sendRecord(to: Connection, record: Partial<Outgoing> & Pick<Outgoing, "type">, urgent = false): void {
    to.sendRecord({ ...blankRecord, ...record }, urgent);
    this.#connections.markDirty(to);
  }

  /** Answers a question. */
  answer({ from, id, kind }: Delivery, answer: unknown): void {
    this.#sendAnswer(from, RecordType.answer, id, kind, answer);
  }

  /** Answers a question or a stream with an error. */
  answerFailure({ from, id, kind }: Delivery, error: unknown): void {
    this.#sendAnswer(from, RecordType.failure, id, kind, toFailure(error, describe(this.address)));
  }

  /** Sends one item of a stream. */
  sendItem({ from, id, kind }: Delivery, item: unknown): void {
    this.#sendAnswer(from, RecordType.item, id, kind, item);
  }

  /** Enters that this message is being handled, which gives its sender credit. */
  take(delivery: Delivery): void {
    if (delivery.from.take(delivery.lane)) this.sendRecord(delivery.from, { type: RecordType.credit });
  }

  /** Reports a message that came but will not be handled. */
  refuse(delivery: Delivery, reason: DeadLetterReason): void {
    this.#undelivered.refused(delivery, reason);
  }

  /** Lets a connection send what it can, now that it may have credit. */
  resume(connection: Connection): void {
    this.#connections.markDirty(connection);
  }

  /** Posts everything that is ready. */
  flush(): void {
    this.#connections.flush();
  }

  /** Takes in everything that has arrived, without the event loop. */
  drain(): void {
    this.#connections.drain(this.#incoming.accept);
  }

  /** From here on, until the event loop hands this actor a packet, all it sends goes at once. */
  sendAtOnce(): void {
    this.#connections.synchronous = true;
    this.#connections.flush();
  }

  /**
   * Blocks this thread, receiving meanwhile, until `done` or the deadline. Returns whether it was done.
   * Whatever the resident's `interrupt` throws passes through.
   */
  blockUntil(done: () => boolean, deadlineMs: number): boolean {
    this.sendAtOnce();
    for (;;) {
      const seen = this.signal.sequence;
      this.drain();
      this.#resident.interrupt();
      if (done()) return true;
      const leftMs = deadlineMs - this.clock.now();
      if (leftMs <= 0) return false;
      this.signal.sleep(seen, leftMs);
    }
  }

  /** Resolves when nothing waits for credit anywhere. */
  allReady(): Promise<void> {
    return this.#connections.allReady();
  }

  /** Turns what waits for credit into dead letters: this actor is about to end. */
  abandonWaiting(): void {
    this.#connections.abandonWaiting();
  }

  /** Leaves every connection: this actor has ended. */
  close(): void {
    this.asks.close();
    this.#connections.leave();
  }

  /** Answers ride the control lane: never limited, but counted, so that one that does not arrive is known. */
  #sendAnswer(to: Connection, type: RecordType, id: number, kind: string, answer: unknown): void {
    const body = this.codecs.encode(answer);
    to.send({ ...blankRecord, type, id, kind, body, isEncoded: body !== answer });
    this.#connections.markDirty(to);
  }

  #onPacket(connection: Connection, link: Link, first: Packet): void {
    this.#connections.synchronous = false;
    let packet: Packet | undefined = first;
    // Polling for what is there already costs less than half of an event for each.
    for (let count = 0; packet !== undefined; count++) {
      this.#incoming.accept(connection, packet);
      packet = count < packetsPerEvent ? link.poll() : undefined;
    }
    this.#resident.wake();
  }

  #message(
    to: Address,
    type: RecordType,
    id: number,
    kind: string,
    deadlineMs: number,
    message: unknown,
    options: TellOptions | undefined,
  ): Outgoing {
    if (this.settings.freezeMessages) deepFreeze(message);
    const lane = laneOf(to.lanes, kind);
    const body = this.codecs.encode(message);
    const isEncoded = body !== message;
    const trace = this.#tracer?.outgoing();
    return { type, lane, isEncoded, id, kind, deadlineMs, trace, body, transfer: options?.transfer };
  }

  #sendMessage(to: Address, record: Outgoing): boolean {
    const connection = this.connect(to);
    if (connection === undefined) {
      this.#undelivered.unreachable(to, record);
      return true;
    }
    const accepted = connection.send(record);
    this.#connections.markDirty(connection);
    if (accepted || !this.#connections.synchronous || record.lane !== laneIndex.data) return accepted;
    return this.#blockForCredit(connection, record.kind);
  }

  #blockForCredit(connection: Connection, kind: string): boolean {
    const { sendDeadlineMs } = this.settings;
    if (this.blockUntil(() => connection.hasCredit, this.clock.now() + sendDeadlineMs)) return true;
    const target = describe(connection.peer);
    throw new TroupeError(
      "SEND_TIMEOUT",
      `[tell ${target}.${kind}] credit within ${sendDeadlineMs} ms: the receiver took nothing (see what it does with inspect())`,
      { fields: { target, kind } },
    );
  }
}

function checkDeadline(where: string, deadlineMs: number): void {
  if (deadlineMs > 0 && Number.isFinite(deadlineMs)) return;
  throw new TroupeError(
    "DEADLINE_INVALID",
    `[${where}] deadlineMs as a positive number: got ${deadlineMs} (nothing may wait for ever)`,
    { fields: { deadlineMs } },
  );
}
