import { Preloaded } from "../actor/preload.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Invitation } from "../hosting/host-agent.ts";
import type { HostProcess } from "../hosting/host-process.ts";
import type { HostsOptions } from "../hosting/hosts.ts";
import type { LinkPlace } from "../hosting/placement.ts";
import { ProcessPool } from "../hosting/process-pool.ts";
import type { Warmup } from "../hosting/thread.ts";
import { WarmStandbys } from "../hosting/warm-standbys.ts";
import { ActorRef } from "../messaging/actor-ref.ts";
import { type Address, describe } from "../protocol/address.ts";
import { type Failure, toFailure } from "../protocol/failure.ts";
import { RecordType } from "../protocol/record.ts";
import type { RuntimeEvent } from "../protocol/runtime-event.ts";
import {
  defaultMessagingSettings,
  defaultStartDeadlineMs,
  defaultStopDeadlineMs,
  type MessagingSettings,
  terminateGraceMs,
} from "../protocol/settings.ts";
import type { ActorRole, SpawnPlace, StopOptions } from "../protocol/spawn.ts";
import { Signal } from "../transport/signal.ts";
import type { Network } from "../transport/tcp/tcp-door.ts";
import { type ActorRecord, type Answerable, recordOf } from "./actor-record.ts";
import { Addresses } from "./addresses.ts";
import { type LaunchContext, launch } from "./launch.ts";
import {
  isStuck,
  nameTaken,
  noSuchHost,
  startedTooLate,
  startTimeout,
  withoutProcess,
} from "./launch-errors.ts";
import { Part, type PartListeners } from "./part.ts";
import { Registry } from "./registry.ts";

/** Options of a {@link Launcher}: those that all parts of its system share. */
export interface LauncherOptions {
  /** Module that is imported first in the main thread and in every actor's thread; see `Preload` for its exports. */
  readonly preload?: URL;
  readonly messaging?: Partial<MessagingSettings>;
  readonly clock?: Clock;
  /** How its processes reach each other over TCP. Without it they use Unix sockets and shared memory of this machine. */
  readonly network?: Network;
  /** Other hosts that start processes for it; needs {@link network}. Default: none. */
  readonly hosts?: HostsOptions;
}

/** Starts and stops incarnations and reports their events, each to the part of the system that it belongs to. */
export class Launcher {
  readonly clock: Clock;
  readonly settings: MessagingSettings;
  readonly registry: Registry;
  readonly addresses = new Addresses();
  readonly #options: LauncherOptions;
  readonly #preloaded: Preloaded;
  readonly processes: ProcessPool;
  readonly #standbys = new WarmStandbys();
  readonly #context: LaunchContext;
  /** Roles and parts by name: an actor keeps its role through all incarnations. */
  readonly #known = new Map<string, { readonly role: ActorRole; readonly part: Part }>();
  readonly #parts = new Set<Part>();

  constructor(options: LauncherOptions) {
    const { clock = systemClock, messaging } = options;
    const settings = { ...defaultMessagingSettings, ...messaging };
    const preloadUrl = options.preload?.href;
    this.clock = clock;
    this.settings = settings;
    this.#options = options;
    this.#preloaded = new Preloaded(preloadUrl, () => this.registry.endpoint.outbox);
    const { codecs, opener } = this.#preloaded;
    this.processes = new ProcessPool({
      preloadUrl,
      settings,
      network: options.network,
      hosts: options.hosts,
      support: () => this.#preloaded.processes,
    });
    const [processes, standbys] = [this.processes, this.#standbys];
    this.registry = new Registry({
      clock,
      opener,
      processes,
      codecs,
      settings,
      report: (event) => this.report(event),
      onUndelivered: (message) => this.#preloaded.onUndelivered(message),
      onUnhandled: (failure, actor) => this.#known.get(actor.name)?.part.raise(failure, describe(actor)),
      spawn: (place, init, ownerUid) => this.#startOwned(place, init, ownerUid),
      stop: (record, options) => this.stop(record, options),
    });
    const systemPlace = this.registry.place;
    this.#context = { clock, settings, preloadUrl, opener, processes, standbys, systemPlace };
  }

  /** Makes a ref that the system holds; `target.address` may change. */
  refTo<P>(target: { readonly address: Address }): ActorRef<P> {
    return new ActorRef<P>(this.registry.endpoint.outbox, target);
  }

  /** Opens a part. The first is opened with the system. */
  open(listeners: PartListeners): Part {
    const part = new Part(listeners);
    this.#parts.add(part);
    return part;
  }

  /**
   * Begins to start the process of an actor, so that several start at the same time; and its thread, if it has `standbyModules`: that one
   * loads the actor's module while others still start.
   */
  prepare(place: SpawnPlace, part: Part): void {
    const { name, placement = "thread", process = name, standbyModules } = place;
    if (placement === "main" || part.refusesStarts) return;
    const warmup = standbyModules && this.#warmupOf(place, []);
    if (placement === "thread") {
      if (warmup === undefined) return;
      part.standbys.set(name, process);
      this.#standbys.prepareStandby(warmup);
      return;
    }
    part.processes.add(process);
    if (place.host !== undefined) this.processes.want(process, place.host);
    const prepared = this.#preloaded.load().then(() => this.processes.host(process, warmup));
    prepared.catch(() => {}); // reported by `start`, which comes next
  }

  /**
   * Starts a warm standby: a thread in the actor's process that loads the modules of its next incarnation and waits. Returns
   * false if there is nothing left to start.
   */
  prepareStandby(place: SpawnPlace, part: Part): boolean {
    const { name, placement = "thread", process = name, standbyModules } = place;
    if (standbyModules === undefined || placement === "main" || part.refusesStarts) return false;
    part.standbys.set(name, process);
    const warmup = this.#warmupOf(place, standbyModules);
    if (placement === "thread") return this.#standbys.prepareStandby(warmup);
    return this.processes.prepareStandby(process, warmup);
  }

  /**
   * Prepares the next incarnation of an actor that is about to end: its present process outlives it, or there is a standby; both
   * with a thread if it has `standbyModules`.
   * @param keepsProcess - whether that process can be trusted
   */
  prepareNext(place: SpawnPlace, part: Part, keepsProcess: boolean): void {
    const process = processOf(place);
    if (process !== undefined && !part.refusesStarts) {
      const warmup = place.standbyModules && this.#warmupOf(place, place.standbyModules);
      if (keepsProcess && this.processes.keep(process, warmup)) return;
      this.processes.letGo(process);
    }
    this.prepareStandby(place, part);
  }

  /** The next incarnation of this actor will not come. */
  expectNoNext(place: SpawnPlace): void {
    this.registry.unexpect(place.name);
    const process = processOf(place);
    if (process !== undefined) this.processes.letGo(process);
  }

  /** Starts one incarnation and resolves once its `start` has resolved. */
  async start(place: SpawnPlace, init: unknown, answerable: Answerable): Promise<ActorRecord> {
    await this.#preloaded.load();
    const { name, placement = "thread", startDeadlineMs = defaultStartDeadlineMs } = place;
    this.#refuseTakenName(name);
    if (placement !== "process" && place.process !== undefined) throw withoutProcess(name, placement);
    if (place.host !== undefined) this.#wantHost(place, place.host);
    let host: HostProcess | undefined;
    if (placement === "process") {
      // The process may begin to leave while this waits, when its last actor ends: then get a new one.
      const process = place.process ?? name;
      answerable.part.processes.add(process);
      do host = await this.processes.host(process);
      while (host.isLeaving);
    }
    this.#refuseTakenName(name); // another may have taken it meanwhile
    if (answerable.part.refusesStarts) throw startedTooLate(name);
    const record = this.#launch(place, init, { placement, signal: new Signal(), host }, answerable);
    await this.#untilStarted(record, startDeadlineMs);
    return record;
  }

  /**
   * Stops one incarnation and resolves when nothing of it runs any more. After the deadline it is terminated.
   * @throws {TroupeError} `ACTOR_STUCK` if termination does not end it, because native code does not return
   */
  async stop(record: ActorRecord, options: StopOptions): Promise<void> {
    const { reason = "stopped by its system", drain = true, deadlineMs = defaultStopDeadlineMs } = options;
    const { failure } = options;
    if (failure !== undefined)
      this.registry.deathWatch.failed(record, toFailure(failure, describe(record.address)));
    if (record.down === undefined)
      this.registry.sendTo(record, { type: RecordType.stop, body: { reason, drain } });
    const stuck = Promise.withResolvers<never>();
    const force = this.clock.after(deadlineMs, () => void this.#terminate(record));
    const giveUp = this.clock.after(deadlineMs + terminateGraceMs, () =>
      stuck.reject(isStuck(record.address)),
    );
    try {
      await Promise.race([record.worker.exited, stuck.promise]);
    } finally {
      force.cancel();
      giveUp.cancel();
    }
  }

  /** Listens for other hosts that want to join. */
  async invite(): Promise<Invitation> {
    await this.#preloaded.load();
    return await this.processes.invite();
  }

  /** The actors of a part of which something still runs, in the order they were started. */
  running(part: Part): readonly ActorRecord[] {
    return this.registry.actors.running.filter((record) => record.part === part);
  }

  /** The actors of a part that have not ended, in the order they were started. */
  living(part: Part): readonly ActorRecord[] {
    return this.registry.actors.living.filter((record) => record.part === part);
  }

  /** Closes a part whose actors have ended: its warm standbys and processes end, and with the last part the system. */
  async close(part: Part, failure?: Failure): Promise<void> {
    const { standbys, processes } = part;
    await this.#standbys.close([...standbys.keys()]);
    await this.processes.left(new Set(standbys.values()), processes);
    this.#parts.delete(part);
    if (this.#parts.size > 0) return;
    this.registry.endpoint.close();
    await this.processes.close(failure);
  }

  /** Passes an event to the part of its actor, with the actor's role. */
  report(event: RuntimeEvent): void {
    const known = this.#known.get("actor" in event ? event.actor : nameIn(event.to));
    const sender = "from" in event ? this.#known.get(nameIn(event.from)) : undefined;
    const [first] = this.#parts;
    const part = known?.part ?? sender?.part ?? first;
    part?.hear("actor" in event ? { ...event, ...known?.role } : event);
  }

  async #startOwned(place: SpawnPlace, init: unknown, ownerUid: number): Promise<ActorRecord> {
    const owner = this.registry.actors.livingRecord(ownerUid);
    if (owner === undefined) throw startedTooLate(place.name);
    return await this.start(place, init, { part: owner.part, ownerUid });
  }

  /** @throws {TroupeError} `HOST_MISSING` if the system has no such host, `PROCESS_UNSUPPORTED` for an actor of no process */
  #wantHost({ name, placement = "thread", process = name }: SpawnPlace, host: number): void {
    if (placement !== "process") throw withoutProcess(name, placement, "host");
    if (!this.processes.want(process, host)) throw noSuchHost(name, host, this.#options.hosts?.count ?? 1);
  }

  #warmupOf({ name, module, resourceLimits, modules }: SpawnPlace, later: readonly URL[]): Warmup {
    const moduleUrls = [this.#options.preload, module, ...later].flatMap((url) => url?.href ?? []);
    return { name, moduleUrls, resourceLimits, modules };
  }

  #refuseTakenName(name: string): void {
    const holder = this.registry.actors.livingNamed(name);
    if (holder !== undefined) throw nameTaken(name, holder.address);
  }

  #launch(place: SpawnPlace, init: unknown, linkPlace: LinkPlace, answerable: Answerable): ActorRecord {
    const address = this.addresses.next(place.name);
    const launched = launch(this.#context, place, address, this.#preloaded.codecs.encode(init), linkPlace);
    const role = roleOf(place);
    this.#known.set(place.name, { role, part: answerable.part });
    const record = recordOf(address, linkPlace, { ...launched, role }, answerable);
    this.registry.enter(record, launched.systemEnd);
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
    this.registry.deathWatch.stopped(record, true);
    await record.worker.terminate();
  }
}

/** Returns the name in `name#incarnation`. */
const nameIn = (actor: string): string => actor.slice(0, actor.lastIndexOf("#"));

/** The name of the process that an actor has; undefined for an actor of no process. */
export function processOf({ name, placement, process = name }: SpawnPlace): string | undefined {
  return placement === "process" ? process : undefined;
}

function roleOf({ role, index }: SpawnPlace): ActorRole {
  return { ...(role !== undefined && { role }), ...(index !== undefined && { index }) };
}
