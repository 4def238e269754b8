import { refuseKind } from "../actor/handling.ts";
import type { Clock } from "../clock.ts";
import type { LinkPlace } from "../hosting/placement.ts";
import type { ProcessPool } from "../hosting/process-pool.ts";
import { DeadLetters } from "../inspection/dead-letters.ts";
import { ActorRef } from "../messaging/actor-ref.ts";
import type { Connection } from "../messaging/connection.ts";
import { Endpoint } from "../messaging/endpoint.ts";
import type { Delivery, Resident } from "../messaging/resident.ts";
import { makeTracer, type Tracer } from "../messaging/tracer.ts";
import { type Address, describe, systemAddress } from "../protocol/address.ts";
import type { DeadLetter } from "../protocol/dead-letter.ts";
import type { Failure } from "../protocol/failure.ts";
import { type Envelope, type Outgoing, RecordType } from "../protocol/record.ts";
import type { RuntimeEvent, Span } from "../protocol/runtime-event.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import type { SpawnPlace, StopOptions } from "../protocol/spawn.ts";
import type { CodecSet } from "../transport/codec.ts";
import type { LinkEnd } from "../transport/link.ts";
import type { LinkOpener } from "../transport/link-opener.ts";
import { Signal } from "../transport/signal.ts";
import type { ActorRecord } from "./actor-record.ts";
import { ActorTable } from "./actor-table.ts";
import { DeathWatch } from "./death-watch.ts";
import { Joiner } from "./joiner.ts";
import { nameUnknown } from "./launch-errors.ts";

/** Parts of a {@link Registry}. */
export interface RegistryOptions {
  readonly clock: Clock;
  readonly codecs: CodecSet;
  readonly settings: MessagingSettings;
  readonly opener: LinkOpener;
  readonly processes: ProcessPool;
  report(event: RuntimeEvent): void;
  onUndelivered(message: unknown): void;
  /** Called for a failure that reaches no supervisor, owner, watcher or asker. */
  onUnhandled(failure: Failure, actor: Address): void;
  /** Starts an actor that another one owns. */
  spawn(place: SpawnPlace, init: unknown, ownerUid: number): Promise<ActorRecord>;
  stop(record: ActorRecord, options: StopOptions): Promise<void>;
}

/** The system's own endpoint. It receives what actors tell and ask their system, links actors, and keeps their records. */
export class Registry implements Resident {
  readonly endpoint: Endpoint;
  readonly actors = new ActorTable();
  readonly deadLetters = new DeadLetters();
  readonly deathWatch: DeathWatch;
  readonly signal = new Signal();
  /** Where the system itself lives. */
  readonly place: LinkPlace = { placement: "main", signal: this.signal };
  readonly #options: RegistryOptions;
  readonly #tracer: Tracer | undefined;
  readonly #joiner: Joiner;
  /** Searches for actors that are about to start, by name. */
  readonly #sought = new Map<string, PromiseWithResolvers<Address>>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    const { clock, codecs, settings, opener, processes } = options;
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
    const sendTo = this.sendTo.bind(this);
    this.#joiner = new Joiner({ processes, isStrict: settings.freezeMessages, sendTo });
    const { endpoint, actors } = this;
    this.deathWatch = new DeathWatch({ ...options, endpoint, actors, joiner: this.#joiner, sendTo });
  }

  /** Runs `body` as the root of a trace when its turn has come. */
  begin<T>(kind: string, body: () => T): T {
    return this.#tracer === undefined ? body() : this.#tracer.begin(kind, describe(systemAddress), body);
  }

  /** Sends an actor a record of the runtime's own. */
  sendTo(record: ActorRecord, message: Partial<Outgoing> & Pick<Outgoing, "type">): void {
    this.endpoint.outbox.sendRecord(this.endpoint.connect(record.address), message, true);
  }

  /**
   * Resolves with the address of the actor of this name; if it is starting or its supervisor restarts it, once it has started.
   * @throws {TroupeError} `ACTOR_UNKNOWN` with the nearest name
   */
  async find(name: string): Promise<Address> {
    const record = this.actors.livingNamed(name);
    if (record?.hasStarted === true) return record.address;
    if (!this.actors.isExpected(name)) throw nameUnknown(name, this.actors.names);
    const sought = this.#sought.get(name) ?? Promise.withResolvers<Address>();
    this.#sought.set(name, sought);
    return await sought.promise;
  }

  /** Notes that no supervisor starts this actor again: searches for it fail. */
  unexpect(name: string): void {
    this.actors.unexpect(name);
    const sought = this.#sought.get(name);
    if (sought === undefined || this.actors.isExpected(name)) return;
    this.#sought.delete(name);
    sought.reject(nameUnknown(name, this.actors.names));
  }

  /**
   * Sends a heartbeat probe to each of these actors that seems idle, unless it has one to answer: an actor that is stuck behind an
   * `await` seems idle too. Each look of the watchdog thus wakes each idle actor once.
   */
  probe(records: readonly ActorRecord[]): void {
    for (const record of records) this.#probe(record);
  }

  #probe(record: ActorRecord): void {
    const { state, answeredMs } = record.board.read();
    const isAsked = record.probedMs > answeredMs;
    if (state !== "idle" || isAsked || !record.hasStarted || record.place.placement === "main") return;
    record.probedMs = this.#options.clock.now();
    this.sendTo(record, { type: RecordType.probe, body: record.probedMs });
  }

  /** Adds a new incarnation and opens this end of its link to the system. */
  enter(record: ActorRecord, end: LinkEnd): void {
    this.actors.enter(record);
    this.endpoint.attach(record.address, end);
    record.started.promise.catch(() => {}); // reported to the spawner; a later end is reported by `ended`
    void record.worker.exited.then((error) => this.#exited(record, error));
  }

  onMessage(delivery: Delivery): void {
    this.endpoint.take(delivery);
    if (delivery.type === RecordType.ask && delivery.kind === "spawn") void this.#spawnFor(delivery);
    else if (delivery.type === RecordType.ask && delivery.kind === "find") void this.#findFor(delivery);
    else if (delivery.type === RecordType.emit) this.#emitted(delivery);
    else if (delivery.type === RecordType.span) this.#traced(delivery);
    else refuseKind(this.endpoint, delivery);
  }

  onSystemRecord(from: Connection, { type, body }: Envelope): void {
    const record = this.actors.record(from.peer.uid);
    if (record === undefined) return;
    if (type === RecordType.started) this.#started(record, body as { address: Address; kinds: string[] });
    else if (type === RecordType.failed) this.deathWatch.failed(record, body as Failure);
    else if (type === RecordType.stopped) this.deathWatch.stopped(record);
    else if (type === RecordType.connect) this.#join(record, body as Address);
    else if (type === RecordType.watch) this.deathWatch.watch(record, body as Address);
    else if (type === RecordType.watchSiblings) this.deathWatch.watchSiblings(record);
    else if (type === RecordType.unwatch) this.deathWatch.unwatch(record, body as Address);
    else if (type === RecordType.undelivered) this.onDeadLetter(body as DeadLetter, undefined);
  }

  onDown(): void {
    queueMicrotask(() => this.endpoint.watches.callNext());
  }

  onDeadLetter(letter: DeadLetter, message: unknown): void {
    this.deadLetters.enter(letter);
    if (message !== undefined) this.#options.onUndelivered(message);
    this.#options.report({ kind: "message.undelivered", ...letter });
  }

  /** A living actor has a link to the system from the start, so this one has ended or never existed. */
  requestLink(to: Address): void {
    this.requestDown(to);
  }

  requestDown(of: Address): void {
    if (this.actors.livingRecord(of.uid) === undefined) this.endpoint.ended(of.uid, this.actors.endOf(of));
  }

  forgoDown(): void {}

  onPeerEnded(): void {}

  wake(): void {}

  interrupt(): void {}

  #started(record: ActorRecord, { address, kinds }: { address: Address; kinds: string[] }): void {
    record.address = address;
    record.kinds = kinds;
    record.hasStarted = true;
    this.#options.report({ kind: "actor.started", actor: address.name, incarnation: address.incarnation });
    record.started.resolve();
    this.#sought.get(address.name)?.resolve(address);
    this.#sought.delete(address.name);
  }

  #exited(record: ActorRecord, error: Error | undefined): void {
    this.deathWatch.exited(record, error);
    this.actors.leave(record);
    this.#options.processes.release(record.place);
  }

  #join(left: ActorRecord, to: Address): void {
    const right = this.actors.livingRecord(to.uid);
    if (right === undefined) {
      this.#joiner.notifyEnd(left, { uid: to.uid, down: this.actors.endOf(to), isSibling: false });
      return;
    }
    // An actor that has ended since it asked needs no link.
    if (left.down === undefined) this.#joiner.join(left, right);
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
      this.endpoint.outbox.answer(delivery, record.address);
    } catch (error) {
      this.endpoint.outbox.answerFailure(delivery, error);
    }
  }
  async #findFor(delivery: Delivery): Promise<void> {
    const { outbox } = this.endpoint;
    try {
      const address = await this.find(delivery.body as string);
      outbox.answer(delivery, new ActorRef(outbox, { address }));
    } catch (error) {
      outbox.answerFailure(delivery, error);
    }
  }
}
