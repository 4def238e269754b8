import type { ActorRecord } from "./actor-record.ts";
import { type Address, describe } from "./address.ts";
import { Census } from "./census.ts";
import type { Clock } from "./clock.ts";
import type { CodecSet } from "./codec.ts";
import type { Connection } from "./connection.ts";
import { type DeadLetter, DeadLetters } from "./dead-letters.ts";
import { Endpoint } from "./endpoint.ts";
import { ActorDown, type Down, type Failure, fromFailure, toFailure } from "./failure.ts";
import { refuseKind } from "./handling.ts";
import { inspectActor } from "./inspection.ts";
import { Joiner } from "./joiner.ts";
import type { Outgoing } from "./lane-sender.ts";
import type { LinkEnd } from "./link.ts";
import type { LinkOpener } from "./link-opener.ts";
import type { Delivery } from "./mailbox.ts";
import type { LinkPlace } from "./placement.ts";
import type { ProcessPool } from "./process-pool.ts";
import { type Envelope, RecordType } from "./record.ts";
import type { Resident } from "./resident.ts";
import type { RuntimeEvent } from "./runtime-event.ts";
import type { MessagingSettings } from "./settings.ts";
import { Signal } from "./signal.ts";
import type { SpawnPlace, StopOptions } from "./spawn-place.ts";
import { systemAddress } from "./system-address.ts";
import { makeTracer, type Span, type Tracer } from "./tracer.ts";
import type { OnDown } from "./watches.ts";

/** What a registry is made of. */
export interface RegistryOptions {
  readonly clock: Clock;
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  readonly opener: LinkOpener;
  readonly processes: ProcessPool;
  report(event: RuntimeEvent): void;
  onUndelivered(message: unknown): void;
  /** A failure that nobody watched, asked for or supervised. */
  onUnhandled(failure: Failure, actor: Address): void;
  /** Starts an actor that another one owns. */
  spawn(place: SpawnPlace, init: unknown, ownerUid: number): Promise<ActorRecord>;
  stop(record: ActorRecord, options: StopOptions): Promise<void>;
}

/**
 * The system's own endpoint and its knowledge of every actor: joins actors by links of their own, and is
 * the one authority on who has ended and why.
 */
export class Registry implements Resident {
  readonly endpoint: Endpoint;
  readonly census = new Census();
  readonly deadLetters = new DeadLetters();
  readonly signal = new Signal();
  /** Where the system itself lives. */
  readonly place: LinkPlace = { placement: "main", signal: this.signal };
  readonly #options: RegistryOptions;
  readonly #tracer: Tracer | undefined;
  readonly #joiner: Joiner;

  constructor(options: RegistryOptions) {
    this.#options = options;
    const { clock, codecs, settings, opener, processes } = options;
    this.#joiner = new Joiner({
      processes,
      isStrict: settings.freezeMessages,
      sendTo: (record, message) => this.sendTo(record, message),
    });
    const { name, incarnation } = systemAddress;
    this.#tracer = makeTracer(systemAddress, settings, clock.now, (span) =>
      options.report({ kind: "span.finished", actor: name, incarnation, ...span }),
    );
    this.endpoint = new Endpoint({
      address: systemAddress,
      clock,
      codecs,
      settings,
      opener,
      signal: this.signal,
      tracer: this.#tracer,
      resident: this,
    });
  }

  /** Runs `body` as the beginning of a trace, when its turn has come. */
  begin<T>(kind: string, body: () => T): T {
    return this.#tracer === undefined ? body() : this.#tracer.begin(kind, describe(systemAddress), body);
  }

  /** Sends an actor a record of the runtime's own. */
  sendTo(record: ActorRecord, message: Partial<Outgoing> & Pick<Outgoing, "type">): void {
    const connection = this.endpoint.connect(record.address);
    if (connection !== undefined) this.endpoint.sendRecord(connection, message, true);
  }

  /** Enters a new incarnation and opens this side of its link to the system. */
  enter(record: ActorRecord, end: LinkEnd): void {
    this.census.enter(record);
    this.endpoint.attach(record.address, end);
    record.started.promise.catch(() => {}); // told to whoever spawns; a later end is told by `ended`
    void record.vessel.exited.then((error) => this.#exited(record, error));
  }

  /** Enters the end of an incarnation and tells everyone concerned, once. */
  end(record: ActorRecord, down: Down, forced = false): void {
    if (record.down !== undefined) return;
    // What it posted before its end is taken in first; that may hold a better account of its end.
    this.endpoint.drain();
    if (record.down !== undefined) return;
    record.down = down;
    this.#reportEnd(down, forced);
    const numTold = this.endpoint.ended(record.address.uid, down);
    this.#tellOthers(record, down);
    record.started.reject(startError(down));
    record.ended.resolve(down);
    this.#stopOwned(record);
    if (down.cause !== undefined && record.hasStarted && numTold === 0) this.#escalate(record, down.cause);
  }

  onMessage(delivery: Delivery): void {
    this.endpoint.take(delivery);
    if (delivery.type === RecordType.ask && delivery.kind === "spawn") void this.#spawnFor(delivery);
    else if (delivery.type === RecordType.emit) this.#emitted(delivery);
    else if (delivery.type === RecordType.span) this.#traced(delivery);
    else refuseKind(this.endpoint, delivery);
  }

  onSystemRecord(from: Connection, { type, body }: Envelope): void {
    const record = this.census.record(from.peer.uid);
    if (record === undefined) return;
    if (type === RecordType.started) this.#started(record, body as { address: Address; kinds: string[] });
    else if (type === RecordType.failed) this.end(record, downOf(record, body as Failure));
    else if (type === RecordType.stopped) this.end(record, downOf(record));
    else if (type === RecordType.connect) this.#join(record, body as Address);
    else if (type === RecordType.watch) this.#watch(record, body as Address);
    else if (type === RecordType.unwatch)
      this.census.record((body as Address).uid)?.watchers.delete(from.peer.uid);
    else if (type === RecordType.undelivered) this.onDeadLetter(body as DeadLetter, undefined);
  }

  onDown(onDown: OnDown, down: Down): void {
    queueMicrotask(() => onDown(down));
  }

  onDeadLetter(letter: DeadLetter, message: unknown): void {
    this.deadLetters.enter(letter);
    if (message !== undefined) this.#options.onUndelivered(message);
    this.#options.report({ kind: "message.undelivered", ...letter });
  }

  /** A living actor has its link to the system from the start, so this one has ended or never was. */
  requestLink(to: Address): void {
    this.requestDown(to);
  }

  requestDown(of: Address): void {
    if (this.census.livingRecord(of.uid) === undefined) this.endpoint.ended(of.uid, this.census.endOf(of));
  }

  forgoDown(): void {}

  wake(): void {}

  interrupt(): void {}

  #started(record: ActorRecord, { address, kinds }: { address: Address; kinds: string[] }): void {
    record.address = address;
    record.kinds = kinds;
    record.hasStarted = true;
    this.#options.report({ kind: "actor.started", actor: address.name, incarnation: address.incarnation });
    record.started.resolve();
  }

  #exited(record: ActorRecord, error: Error | undefined): void {
    this.endpoint.drain();
    const cause = error ?? new Error("its thread left without being asked to stop");
    const failure = toFailure(cause, describe(record.address));
    this.end(
      record,
      downOf(record, { ...failure, fields: { ...failure.fields, ...this.#lastDoing(record) } }),
    );
    this.census.leave(record);
    this.#options.processes.release(record);
  }

  /** What an actor that left without a word was at: its board outlives it, even where its process was killed. */
  #lastDoing(record: ActorRecord): Record<string, unknown> {
    const { state, pid, handling, op } = inspectActor(record, this.#options.clock.now(), (uid) =>
      this.census.nameOf(uid),
    );
    return state === "stopped" || state === "failed" ? {} : { state, pid, handling, op };
  }

  #join(left: ActorRecord, to: Address): void {
    const right = this.census.livingRecord(to.uid);
    if (right === undefined) {
      this.#joiner.tellEnd(left, to.uid, this.census.endOf(to));
      return;
    }
    // Who has ended since it asked needs no link.
    if (left.down === undefined) this.#joiner.join(left, right);
  }

  #watch(watcher: ActorRecord, of: Address): void {
    const record = this.census.livingRecord(of.uid);
    if (record === undefined) this.#joiner.tellEnd(watcher, of.uid, this.census.endOf(of));
    else record.watchers.add(watcher.address.uid);
  }

  #tellOthers(record: ActorRecord, down: Down): void {
    for (const uid of new Set([...record.watchers, ...record.linked.keys()])) {
      const listener = this.census.livingRecord(uid);
      if (listener !== undefined) this.#joiner.tellEnd(listener, record.address.uid, down);
    }
  }

  #emitted({ from, body }: Delivery): void {
    const { name, incarnation } = from.peer;
    this.#options.report({ kind: "actor.emitted", actor: name, incarnation, event: body });
  }

  #traced({ from, body }: Delivery): void {
    const { name, incarnation } = from.peer;
    this.#options.report({ kind: "span.finished", actor: name, incarnation, ...(body as Span) });
  }

  async #spawnFor(delivery: Delivery): Promise<void> {
    const { place, init } = delivery.body as { place: SpawnPlace; init: unknown };
    try {
      const record = await this.#options.spawn(
        { ...place, module: new URL(place.module) },
        init,
        delivery.from.peer.uid,
      );
      this.endpoint.answer(delivery, record.address);
    } catch (error) {
      this.endpoint.answerFailure(delivery, toFailure(error));
    }
  }

  /** Whoever is not supervised is answered for by its owner; whoever has none, by the program. */
  #escalate(record: ActorRecord, cause: Failure): void {
    if (record.supervised || record.watchers.size > 0) return;
    if (record.ownerUid === undefined) {
      this.#options.onUnhandled(cause, record.address);
      return;
    }
    const owner = this.census.livingRecord(record.ownerUid);
    if (owner !== undefined) this.sendTo(owner, { type: RecordType.childFailed, body: cause });
  }

  #stopOwned(owner: ActorRecord): void {
    for (const record of this.census.running.toReversed()) {
      if (record.ownerUid !== owner.address.uid || record.down !== undefined) continue;
      void this.#options.stop(record, { reason: `${describe(owner.address)} has ended`, drain: false });
    }
  }

  #reportEnd(down: Down, forced: boolean): void {
    const { actor, incarnation, cause } = down;
    if (cause !== undefined) this.#options.report({ kind: "actor.failed", actor, incarnation, cause });
    else this.#options.report({ kind: "actor.stopped", actor, incarnation, forced });
  }
}

function downOf(record: ActorRecord, cause?: Failure): Down {
  const { name, incarnation } = record.address;
  if (cause === undefined) return { actor: name, incarnation, reason: "stopped" };
  return { actor: name, incarnation, reason: "failed", cause };
}

function startError(down: Down): Error {
  return down.cause === undefined ? new ActorDown(`spawn ${down.actor}`, down) : fromFailure(down.cause);
}
