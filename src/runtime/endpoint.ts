import { TroupeError } from "../errors.ts";
import type { AskOptions, Sender, StreamOptions, TellOptions } from "./actor-ref.ts";
import { type Address, describe } from "./address.ts";
import { Asks, type OpenAsk, type Settle } from "./asks.ts";
import type { Clock } from "./clock.ts";
import { type CodecSet, deepFreeze } from "./codec.ts";
import { Connection, type ConnectionLimits, type Lost } from "./connection.ts";
import type { DeadLetter, DeadLetterReason } from "./dead-letters.ts";
import { ActorDown, type Down, type Failure, fromFailure, toFailure } from "./failure.ts";
import type { Outgoing } from "./lane-sender.ts";
import { type LaneIndex, laneIndex } from "./ledger.ts";
import type { Link, LinkEnd } from "./link.ts";
import type { Delivery } from "./mailbox.ts";
import { openLink } from "./port-link.ts";
import {
  type Envelope,
  envelopeAt,
  isMessage,
  type Packet,
  RecordType,
  recordWidth,
  type Trace,
} from "./record.ts";
import type { MessagingSettings } from "./settings.ts";
import type { Signal } from "./signal.ts";
import { Streams } from "./streams.ts";
import { type OnDown, Watches } from "./watches.ts";

/** Who lives at an endpoint, an actor's cell or the system: what the endpoint needs of it. */
export interface Resident {
  /** A message of the protocol came. */
  onMessage(delivery: Delivery): void;
  /** A record between actor and system came. */
  onSystemRecord(from: Connection, record: Envelope): void;
  /** A watched actor ended. */
  onDown(call: OnDown, down: Down): void;
  /** Packets were taken in: time to handle what they brought. */
  wake(): void;
  /** Called whenever this thread, while it blocks, has looked into its ports; throws to break off. */
  interrupt(): void;
  /** Asks for a link to an actor: answered by `attach` or `ended`. */
  requestLink(to: Address): void;
  /** Asks to be told of an actor's end: answered by `ended`. */
  requestDown(of: Address): void;
  /** A message could not be delivered. */
  onDeadLetter(letter: DeadLetter, message: unknown): void;
}

/** What an endpoint is made of. */
export interface EndpointOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  readonly resident: Resident;
}

/** Where one actor sends and receives: its connections, open questions, streams and watches. */
export class Endpoint implements Sender {
  readonly address: Address;
  readonly clock: Clock;
  readonly signal: Signal;
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  readonly asks: Asks;
  readonly streams: Streams;
  /** True while this thread blocks instead of returning to its event loop: all it sends goes at once. */
  synchronous = false;
  /** Trace of the message being handled. */
  currentTrace: Trace | undefined;
  readonly #resident: Resident;
  readonly #limits: ConnectionLimits;
  readonly #watches = new Watches();
  readonly #connections = new Map<number, Connection>();
  #dirty: Connection[] = [];
  #flushScheduled = false;

  constructor(options: EndpointOptions) {
    this.address = options.address;
    this.clock = options.clock;
    this.signal = options.signal;
    this.codecs = options.codecs;
    this.settings = options.settings;
    this.asks = new Asks(options.clock);
    this.streams = new Streams(this);
    this.#resident = options.resident;
    this.#limits = connectionLimits(options.settings);
  }

  tell(to: Address, kind: string, message: unknown, options?: TellOptions): boolean {
    const record = this.#message(RecordType.tell, 0, kind, 0, message, options);
    return this.#sendMessage(to, laneOf(to, kind), record);
  }

  ask(to: Address, kind: string, message: unknown, options: AskOptions): Promise<unknown> {
    return new Promise((resolve, reject) => this.openAsk(to, kind, message, options, { resolve, reject }));
  }

  /** Sends a question whose answer goes to `settle`. */
  openAsk(to: Address, kind: string, message: unknown, options: AskOptions, settle: Settle): void {
    checkDeadline(`ask ${describe(to)}.${kind}`, options.deadlineMs);
    const deadlineMs = this.clock.now() + options.deadlineMs;
    const id = this.asks.enter({
      target: to,
      kind,
      deadlineMs,
      allowedMs: options.deadlineMs,
      settle,
    });
    const record = this.#message(RecordType.ask, id, kind, deadlineMs, message, options);
    this.#sendMessage(to, laneOf(to, kind), record);
  }

  stream(
    to: Address,
    kind: string,
    message: unknown,
    options: StreamOptions,
  ): AsyncIterableIterator<unknown> {
    checkDeadline(`stream ${describe(to)}.${kind}`, options.deadlineMs);
    return this.streams.open(
      to,
      kind,
      (id) => {
        const record = this.#message(RecordType.openStream, id, kind, 0, message, options);
        this.#sendMessage(to, laneOf(to, kind), { ...record, body: [record.body, options.credits] });
      },
      options,
    );
  }

  async ready(to: Address): Promise<void> {
    await this.#connections.get(to.uid)?.ready();
  }

  /** Resolves when nothing waits for credit anywhere. */
  async allReady(): Promise<void> {
    this.flush();
    for (const connection of this.#connections.values()) await connection.ready();
  }

  /** Makes sure that a link to this actor exists or is asked for; undefined when the actor has ended. */
  connect(to: Address): Connection | undefined {
    const existing = this.#connections.get(to.uid);
    if (existing !== undefined) return existing;
    if (this.#watches.endOf(to.uid) !== undefined) return undefined;
    const connection = this.#newConnection(to);
    this.#resident.requestLink(to);
    return this.#connections.get(to.uid) === connection ? connection : undefined;
  }

  /** Opens this actor's end of a link to `peer`. */
  attach(peer: Address, end: LinkEnd): Connection {
    const connection = this.#connections.get(peer.uid) ?? this.#newConnection(peer);
    const link = openLink(end);
    connection.open(link);
    link.listen(
      (packet) => this.#onPacket(connection, packet),
      (error) => this.#deadLetter("Undeserialisable", connection.peer, this.address, "unknown", error),
    );
    this.markDirty(connection);
    return connection;
  }

  /** Calls `onDown` once when that actor has ended, also when it has already. */
  watch(of: Address, onDown: OnDown): void {
    const ended = this.#watches.add(of.uid, onDown);
    if (ended !== undefined) this.#resident.onDown(onDown, ended);
    else if (!this.#connections.has(of.uid)) this.#resident.requestDown(of);
  }

  /** Takes back every watch on that actor. */
  unwatch(of: Address): void {
    this.#watches.remove(of.uid);
  }

  /** How that actor ended, as far as this one has heard. */
  endOf(uid: number): Down | undefined {
    return this.#watches.endOf(uid);
  }

  /**
   * Takes in that an actor has ended: what it still sent is received first, then what it never took becomes
   * dead letters, and questions, streams and watches hear of it. Returns how many of those there were.
   */
  ended(uid: number, down: Down): number {
    if (this.#watches.endOf(uid) !== undefined) return 0;
    const connection = this.#connections.get(uid);
    if (connection !== undefined) this.#drainConnection(connection);
    const watchers = this.#watches.ended(uid, down);
    this.#connections.delete(uid);
    connection?.close();
    const numAsks = this.asks.rejectAllTo(
      uid,
      (ask) => new ActorDown(`ask ${describe(ask.target)}.${ask.kind}`, down),
    );
    const numStreams = this.streams.targetDown(uid, down);
    for (const onDown of watchers) this.#resident.onDown(onDown, down);
    return watchers.length + numAsks + numStreams;
  }

  /** Sends one of the runtime's own records. */
  sendRecord(to: Connection, record: Partial<Outgoing> & Pick<Outgoing, "type">, urgent = false): void {
    to.sendRecord({ id: 0, kind: "", deadlineMs: 0, trace: undefined, body: undefined, ...record }, urgent);
    this.markDirty(to);
  }

  /** Answers a question or a stream. */
  answer(delivery: Delivery, answer: unknown): void {
    const { from, id, kind } = delivery;
    this.sendRecord(from, { type: RecordType.answer, id, kind, body: this.codecs.encode(answer) });
  }

  /** Answers a question or a stream with an error. */
  answerFailure(delivery: Delivery, failure: Failure): void {
    const { from, id, kind } = delivery;
    this.sendRecord(from, { type: RecordType.failure, id, kind, body: failure });
  }

  /** Enters that this message is being handled, which gives its sender credit. */
  take(delivery: Delivery): void {
    if (delivery.from.take(delivery.lane)) this.sendRecord(delivery.from, { type: RecordType.credit });
  }

  /** Reports a message that came but cannot be handled. */
  refuse(delivery: Delivery, reason: DeadLetterReason): void {
    this.#deadLetter(reason, delivery.from.peer, this.address, delivery.kind, delivery.body);
  }

  /** Answers a message of a kind this actor does not have. */
  refuseKind(delivery: Delivery): void {
    this.refuse(delivery, "WrongProtocol");
    if (delivery.type === RecordType.tell) return;
    const where = `${describe(this.address)}.${delivery.kind}`;
    const error = new TroupeError(
      "KIND_UNKNOWN",
      `[ask ${where}] a kind of this actor's protocol: it has no handler for it (compare both sides' protocol)`,
      {
        fields: { actor: describe(this.address), kind: delivery.kind },
      },
    );
    this.answerFailure(delivery, toFailure(error));
  }

  /** Answers a stream with its items. */
  answerStream(delivery: Delivery, items: unknown): void {
    this.streams.produce(delivery, items as Iterable<unknown>);
  }

  /** Sees to it that this connection is flushed: at once while blocking, else at the end of this turn. */
  markDirty(connection: Connection): void {
    if (this.synchronous) {
      connection.flush();
      return;
    }
    if (!this.#dirty.includes(connection)) this.#dirty.push(connection);
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    queueMicrotask(() => this.flush());
  }

  /** Posts everything that is ready, one packet a peer. */
  flush(): void {
    this.#flushScheduled = false;
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const connection of dirty) {
      connection.flush();
      this.#reportDropped(connection);
    }
  }

  /** Takes in everything that has arrived, without the event loop. */
  drain(): void {
    for (const connection of this.#connections.values()) this.#drainConnection(connection);
  }

  /**
   * Blocks this thread, receiving meanwhile, until `done` or the deadline. Returns whether it was done.
   * Whatever the resident's `interrupt` throws passes through.
   */
  blockUntil(done: () => boolean, deadlineMs: number): boolean {
    this.synchronous = true;
    for (;;) {
      const seen = this.signal.sequence;
      this.drain();
      this.#resident.interrupt();
      if (done()) return true;
      this.flush();
      const leftMs = deadlineMs - this.clock.now();
      if (leftMs <= 0) return false;
      this.signal.sleep(seen, leftMs);
    }
  }

  /** Closes every connection; what their peers never took becomes dead letters. */
  close(): void {
    this.asks.close();
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }

  #newConnection(peer: Address): Connection {
    const connection = new Connection(peer, this.#limits, (lost) => this.#onLost(connection, lost));
    this.#connections.set(peer.uid, connection);
    return connection;
  }

  #message(
    type: RecordType,
    id: number,
    kind: string,
    deadlineMs: number,
    message: unknown,
    options: TellOptions | undefined,
  ): Outgoing {
    if (this.settings.freezeMessages) deepFreeze(message);
    const body = this.codecs.encode(message);
    return { type, id, kind, deadlineMs, trace: this.currentTrace, body, transfer: options?.transfer };
  }

  #sendMessage(to: Address, lane: LaneIndex, record: Outgoing): boolean {
    const connection = this.connect(to);
    if (connection === undefined) {
      this.#onUnreachable(to, record);
      return true;
    }
    const accepted = connection.send(lane, record);
    this.markDirty(connection);
    if (accepted || !this.synchronous || lane !== laneIndex.data) return accepted;
    return this.#blockForCredit(connection, record.kind);
  }

  #blockForCredit(connection: Connection, kind: string): boolean {
    const deadlineMs = this.clock.now() + this.settings.sendDeadlineMs;
    if (this.blockUntil(() => connection.hasCredit, deadlineMs)) return true;
    throw new TroupeError(
      "SEND_TIMEOUT",
      `[tell ${describe(connection.peer)}.${kind}] credit within ${this.settings.sendDeadlineMs} ms: the receiver took nothing (see what it does with inspect())`,
      { fields: { target: describe(connection.peer), kind } },
    );
  }

  #onPacket(connection: Connection, packet: Packet): void {
    this.synchronous = false;
    this.#accept(connection, packet);
    this.#resident.wake();
  }

  #drainConnection(connection: Connection): void {
    for (;;) {
      const packet = connection.link?.poll();
      if (packet === undefined) return;
      this.#accept(connection, packet);
    }
  }

  #accept(connection: Connection, packet: Packet): void {
    for (let offset = 0; offset < packet.length; offset += recordWidth) {
      this.#acceptRecord(connection, envelopeAt(packet, offset));
    }
  }

  #acceptRecord(from: Connection, record: Envelope): void {
    if (isMessage(record.type)) return this.#acceptMessage(from, record);
    switch (record.type) {
      case RecordType.answer:
        return this.#acceptAnswer(from, record, (ask) => ask.settle.resolve(this.codecs.decode(record.body)));
      case RecordType.failure:
        return this.#acceptAnswer(from, record, (ask) =>
          ask.settle.reject(fromFailure(record.body as Failure)),
        );
      case RecordType.credit:
        return this.markDirty(from);
      case RecordType.link: {
        const { peer, end } = record.body as { peer: Address; end: LinkEnd };
        this.attach(peer, end);
        return;
      }
      case RecordType.down: {
        const { uid, down } = record.body as { uid: number; down: Down };
        this.ended(uid, down);
        return;
      }
      default:
        if (!this.streams.accept(from, record)) this.#resident.onSystemRecord(from, record);
    }
  }

  #acceptMessage(from: Connection, record: Envelope): void {
    const lane = record.type === RecordType.emit ? laneIndex.telemetry : laneOf(this.address, record.kind);
    from.arrived(lane);
    const { type, id, kind, deadlineMs, trace } = record;
    const isStream = type === RecordType.openStream;
    const [encoded, credits] = isStream ? (record.body as [unknown, number]) : [record.body, 0];
    const body = this.codecs.decode(encoded);
    this.#resident.onMessage({ type, id, kind, deadlineMs, trace, body, from, lane, credits });
  }

  #acceptAnswer(from: Connection, record: Envelope, settle: (ask: OpenAsk) => void) {
    const ask = this.asks.settle(record.id);
    if (ask !== undefined) settle(ask);
    else if (!this.streams.accept(from, record)) {
      this.#deadLetter("Expired", from.peer, this.address, record.kind, record.body);
    }
  }

  #onUnreachable(to: Address, record: Outgoing): void {
    const down = this.#watches.endOf(to.uid);
    if (down !== undefined && record.type === RecordType.ask) {
      this.asks.settle(record.id)?.settle.reject(new ActorDown(`ask ${describe(to)}.${record.kind}`, down));
    }
    if (down !== undefined && record.type === RecordType.openStream) this.streams.targetDown(to.uid, down);
    this.#deadLetter(reasonOf(down), this.address, to, record.kind, record.body);
  }

  #onLost(connection: Connection, { message, error }: Lost): void {
    if (error === undefined) {
      const reason = reasonOf(this.#watches.endOf(connection.peer.uid));
      this.#deadLetter(reason, this.address, connection.peer, message.kind, message.body);
      return;
    }
    const failure = toFailure(unsendable(message.kind, error));
    if (message.type === RecordType.ask || message.type === RecordType.openStream) {
      this.asks.settle(message.id)?.settle.reject(fromFailure(failure));
      this.streams.fail(message.id, fromFailure(failure));
    } else if (!isMessage(message.type)) {
      this.sendRecord(connection, {
        type: RecordType.failure,
        id: message.id,
        kind: message.kind,
        body: failure,
      });
    }
    this.#deadLetter("Undeserialisable", this.address, connection.peer, message.kind, message.body);
  }

  #reportDropped(connection: Connection): void {
    const count = connection.takeDropped();
    if (count > 0) this.#deadLetter("Overflow", this.address, connection.peer, "telemetry", undefined, count);
  }

  #deadLetter(
    reason: DeadLetterReason,
    from: Address,
    to: Address,
    messageKind: string,
    message: unknown,
    count = 1,
  ): void {
    const letter = { reason, messageKind, from: describe(from), to: describe(to), count };
    this.#resident.onDeadLetter(letter, message);
  }
}

/** Makes an ActorDown's dead letters tell a name nobody had from one that has gone. */
function reasonOf(down: Down | undefined): DeadLetterReason {
  return down?.reason === "unknown" ? "NoSuchActor" : "Stopped";
}

function laneOf(address: Address, kind: string): LaneIndex {
  const lane = address.lanes[kind];
  return lane === undefined ? laneIndex.data : laneIndex[lane];
}

function connectionLimits(settings: MessagingSettings): ConnectionLimits {
  const { window, outboxCapacity, telemetryCapacity } = settings;
  return [
    { window: Number.POSITIVE_INFINITY, capacity: 0, whenFull: "refuse" },
    { window, capacity: outboxCapacity, whenFull: "refuse" },
    { window, capacity: telemetryCapacity, whenFull: "drop-oldest" },
  ];
}

function checkDeadline(where: string, deadlineMs: number): void {
  if (deadlineMs > 0 && Number.isFinite(deadlineMs)) return;
  throw new TroupeError(
    "DEADLINE_INVALID",
    `[${where}] deadlineMs as a positive number: got ${deadlineMs} (nothing may wait for ever)`,
    {
      fields: { deadlineMs },
    },
  );
}

function unsendable(kind: string, cause: unknown): TroupeError {
  return new TroupeError(
    "MESSAGE_UNSENDABLE",
    `[send ${kind}] plain data: ${cause instanceof Error ? cause.message : String(cause)} (no functions, live handles or class instances without a codec)`,
    { fields: { kind }, cause },
  );
}
