import { TroupeError } from "../errors.ts";
import { type Boot, loadPreload } from "./actor-host.ts";
import type { ActorRecord } from "./actor-record.ts";
import { ActorRef } from "./actor-ref.ts";
import { type Address, type Addressed, describe } from "./address.ts";
import { type Clock, systemClock } from "./clock.ts";
import { CodecSet } from "./codec.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { type Down, type Failure, firstCause, fromFailure } from "./failure.ts";
import { type ActorInspection, inspectActor } from "./inspection.ts";
import { linkBetween, type Placement, startVessel, type ThreadOptions } from "./placement.ts";
import type { Protocol } from "./protocol.ts";
import { RecordType } from "./record.ts";
import { refCodec } from "./ref-codec.ts";
import { Registry } from "./registry.ts";
import type { RuntimeEvent } from "./runtime-event.ts";
import { defaultMessagingSettings, type MessagingSettings } from "./settings.ts";
import { Signal } from "./signal.ts";
import { StatusBoard } from "./status-board.ts";
import type { OnDown } from "./watches.ts";

/** How a system is made. */
export interface SystemOptions {
  readonly name: string;
  /** Hears what happens to actors and messages; what it throws becomes a process warning. */
  readonly onEvent?: (event: RuntimeEvent) => void;
  /**
   * Called with the first cause of a failure that nobody supervised, watched or asked for. By default it is
   * thrown, which ends the process with its message and an exit code other than 0.
   */
  readonly onUnhandled?: (error: Error) => void;
  /** Imported first on the main thread and in every actor's; may export `codecs` and `onUndelivered`. */
  readonly preload?: URL;
  readonly messaging?: Partial<MessagingSettings>;
  readonly clock?: Clock;
}

/** What to spawn. */
export type SpawnOptions<Init> = SpawnPlace &
  (undefined extends Init ? { readonly init?: Init } : { readonly init: Init });

/** What to spawn, but for the value given to `start`. */
export interface SpawnPlace extends ThreadOptions {
  /** Unique among the living. */
  readonly name: string;
  /** The module whose default export is the actor. */
  readonly module: URL;
  /** A thread of its own, or the main thread for actors that only coordinate. */
  readonly placement?: Placement;
  /** How long loading and `start` may take. */
  readonly startDeadlineMs?: number;
}

/** How an actor is stopped. */
export interface StopOptions {
  readonly reason?: string;
  /** Whether messages that have arrived are handled first; true unless said otherwise. */
  readonly drain?: boolean;
  /** After so long it is ended without its consent. */
  readonly deadlineMs?: number;
}

const defaultStartDeadlineMs = 60_000;
const defaultStopDeadlineMs = 5_000;

/** All actors of one program: starts and stops them, joins them, and knows how each is doing. */
export class ActorSystem {
  readonly name: string;
  readonly clock: Clock;
  readonly #options: SystemOptions;
  readonly #settings: MessagingSettings;
  readonly #codecs: CodecSet;
  readonly #registry: Registry;
  readonly #incarnations = new Map<string, number>();
  #preloaded: Promise<void> | undefined;
  #onUndelivered: (message: unknown) => void = () => {};
  #lastUid = 0;
  #stopped: Promise<void> | undefined;

  constructor(options: SystemOptions) {
    this.name = options.name;
    this.clock = options.clock ?? systemClock;
    this.#options = options;
    this.#settings = { ...defaultMessagingSettings, ...options.messaging };
    this.#codecs = new CodecSet([refCodec(() => this.#registry.endpoint)]);
    this.#registry = new Registry({
      clock: this.clock,
      codecs: this.#codecs,
      settings: this.#settings,
      report: (event) => this.#report(event),
      onUndelivered: (message) => this.#onUndelivered(message),
      onUnhandled: (failure, actor) => this.#unhandled(failure, actor),
    });
  }

  /** Messages that were not delivered, and why. */
  get deadLetters(): DeadLetters {
    return this.#registry.deadLetters;
  }

  /**
   * Starts an actor and resolves once its `start` has.
   * @throws {TroupeError} `ACTOR_NAME_TAKEN`, `ACTOR_START_TIMEOUT`, or what its module or `start` threw
   */
  async spawn<P extends Protocol<P>, Init = undefined>(options: SpawnOptions<Init>): Promise<ActorRef<P>> {
    return new ActorRef<P>(this.#registry.endpoint, await this.start(options, false));
  }

  /** Calls `onDown` once when that actor has ended, also when it has already. */
  watch(ref: Addressed, onDown: OnDown): void {
    this.#registry.endpoint.watch(ref.address, onDown);
  }

  /** Takes the system's watches on that actor back. */
  unwatch(ref: Addressed): void {
    this.#registry.endpoint.unwatch(ref.address);
  }

  /** Stops one actor: what has arrived is handled, its `stop` runs, and after the deadline it is ended by force. */
  async stopActor(ref: Addressed, options: StopOptions = {}): Promise<void> {
    const record = this.#registry.record(ref.address.uid);
    if (record !== undefined) await this.stopRecord(record, options);
  }

  /** What every living actor is doing, read from shared memory: it answers also while they are stuck. */
  inspect(): readonly ActorInspection[] {
    const records = [...this.#registry.records];
    const nameOf = (uid: number): string | undefined => {
      const record = this.#registry.record(uid);
      return record === undefined ? undefined : describe(record.address);
    };
    return records
      .filter(({ down }) => down === undefined)
      .map((record) => inspectActor(record, this.clock.now(), nameOf));
  }

  /** Stops every actor, the youngest first, and closes the system. */
  stop(options: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#stopAll(options);
    return this.#stopped;
  }

  /** Stops the system where `await using` leaves its scope. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Starts one incarnation; for supervisors, who keep records rather than refs. */
  async start(options: SpawnOptions<unknown>, supervised: boolean): Promise<ActorRecord> {
    this.#checkLiving(options.name);
    await (this.#preloaded ??= this.#preload());
    const record = this.#launch(options, supervised);
    await this.#untilStarted(record, options.startDeadlineMs ?? defaultStartDeadlineMs);
    return record;
  }

  /** Stops one incarnation and resolves when nothing of it runs any more. */
  async stopRecord(record: ActorRecord, options: StopOptions): Promise<void> {
    const { reason = "stopped by its system", drain = true, deadlineMs = defaultStopDeadlineMs } = options;
    const connection =
      record.down === undefined ? this.#registry.endpoint.connect(record.address) : undefined;
    if (connection !== undefined) {
      this.#registry.endpoint.sendRecord(
        connection,
        { type: RecordType.stop, body: { reason, drain } },
        true,
      );
    }
    const timer = this.clock.after(deadlineMs, () => void this.#terminate(record));
    await record.vessel.exited;
    timer.cancel();
  }

  #checkLiving(name: string): void {
    if (this.#stopped !== undefined) {
      throw new TroupeError(
        "SYSTEM_STOPPED",
        `[spawn ${name}] a running system: ${this.name} has been stopped (make a new one)`,
      );
    }
    for (const { address, down } of this.#registry.records) {
      if (down !== undefined || address.name !== name) continue;
      throw new TroupeError(
        "ACTOR_NAME_TAKEN",
        `[spawn ${name}] a name no living actor has: ${describe(address)} lives (stop it first, or choose another)`,
        {
          fields: { name },
        },
      );
    }
  }

  async #preload(): Promise<void> {
    const preload = await loadPreload(this.#options.preload?.href);
    this.#codecs.teach(preload.codecs ?? []);
    if (preload.onUndelivered !== undefined) this.#onUndelivered = preload.onUndelivered;
  }

  #launch(options: SpawnOptions<unknown>, supervised: boolean): ActorRecord {
    const { name, placement = "thread" } = options;
    const incarnation = (this.#incarnations.get(name) ?? 0) + 1;
    this.#incarnations.set(name, incarnation);
    const address: Address = { uid: ++this.#lastUid, name, incarnation, lanes: {} };
    const place = { placement, signal: new Signal() };
    const board = new StatusBoard(this.clock.now);
    const [systemEnd, actorEnd] = linkBetween({ placement: "main", signal: this.#registry.signal }, place);
    const boot: Boot = {
      address,
      hasThread: placement === "thread",
      moduleUrl: options.module.href,
      preloadUrl: this.#options.preload?.href,
      init: this.#codecs.encode(options.init),
      settings: this.#settings,
      systemLink: actorEnd,
      signal: place.signal.buffer,
      board: board.buffer,
    };
    const vessel = startVessel(placement, boot, this.clock, options);
    const record: ActorRecord = {
      address,
      place,
      board,
      vessel,
      supervised,
      kinds: [],
      hasStarted: false,
      interested: new Set(),
      linked: new Set(),
      started: Promise.withResolvers<void>(),
      ended: Promise.withResolvers<Down>(),
      down: undefined,
    };
    this.#registry.enter(record, systemEnd);
    return record;
  }

  async #untilStarted(record: ActorRecord, deadlineMs: number): Promise<void> {
    const timer = this.clock.after(deadlineMs, () => {
      record.started.reject(startTimeout(record.address, deadlineMs));
      void this.#terminate(record);
    });
    try {
      await record.started.promise;
    } finally {
      timer.cancel();
    }
  }

  async #terminate(record: ActorRecord): Promise<void> {
    await record.vessel.terminate();
    const { name, incarnation } = record.address;
    this.#registry.end(record, { actor: name, incarnation, reason: "stopped" }, true);
  }

  async #stopAll(options: StopOptions): Promise<void> {
    for (const record of [...this.#registry.records].reverse()) await this.stopRecord(record, options);
    this.#registry.endpoint.close();
  }

  #report(event: RuntimeEvent): void {
    try {
      this.#options.onEvent?.(event);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  #unhandled(failure: Failure, actor: Address): void {
    const cause = firstCause(failure);
    const error = new TroupeError(
      "ACTOR_UNHANDLED",
      `[${describe(actor)}] a failure that somebody handles: ${cause.message} (supervise or watch the actor)`,
      {
        fields: { actor: describe(actor) },
        cause: fromFailure(cause),
      },
    );
    if (this.#options.onUnhandled !== undefined) this.#options.onUnhandled(error);
    else
      queueMicrotask(() => {
        throw error;
      });
  }
}

function startTimeout(address: Address, deadlineMs: number): TroupeError {
  return new TroupeError(
    "ACTOR_START_TIMEOUT",
    `[spawn ${describe(address)}] its start to finish within ${deadlineMs} ms: it has not (see what its module does while loading, or raise startDeadlineMs)`,
    { fields: { actor: describe(address), deadlineMs } },
  );
}
