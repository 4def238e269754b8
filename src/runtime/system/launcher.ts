import { Preloaded } from "../actor/preload.ts";
import type { Clock } from "../clock.ts";
import type { Invitation } from "../hosting/host-agent.ts";
import type { HostProcess } from "../hosting/host-process.ts";
import type { HostsOptions } from "../hosting/hosts.ts";
import type { LinkPlace } from "../hosting/placement.ts";
import { ProcessPool } from "../hosting/process-pool.ts";
import { WarmStandbys } from "../hosting/warm-standbys.ts";
import { ActorRef } from "../messaging/actor-ref.ts";
import { type Address, describe } from "../protocol/address.ts";
import { type Failure, toFailure } from "../protocol/failure.ts";
import { RecordType } from "../protocol/record.ts";
import type { RuntimeEvent } from "../protocol/runtime-event.ts";
import {
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
  processWithoutPlacement,
  startedTooLate,
  startTimeout,
  unhandled,
} from "./launch-errors.ts";
import { Registry } from "./registry.ts";

/** Parts of a {@link Launcher}. */
export interface LauncherOptions {
  readonly clock: Clock;
  readonly settings: MessagingSettings;
  readonly preload: URL | undefined;
  readonly network: Network | undefined;
  readonly hosts: HostsOptions | undefined;
  readonly onEvent: ((event: RuntimeEvent) => void) | undefined;
  readonly onUnhandled: ((error: Error) => void) | undefined;
}

/** Starts and stops incarnations and reports their events. Supervisors work through it. */
export class Launcher {
  readonly clock: Clock;
  readonly registry: Registry;
  readonly addresses = new Addresses();
  readonly #options: LauncherOptions;
  readonly #preloaded: Preloaded;
  readonly #processes: ProcessPool;
  readonly #standbys = new WarmStandbys();
  readonly #context: LaunchContext;
  /** Roles by name: an actor keeps its role through all incarnations. */
  readonly #roles = new Map<string, ActorRole>();
  #refusesStarts = false;

  constructor(options: LauncherOptions) {
    const { clock, settings } = options;
    const preloadUrl = options.preload?.href;
    this.clock = clock;
    this.#options = options;
    this.#preloaded = new Preloaded(preloadUrl, () => this.registry.endpoint.outbox);
    const { codecs, opener } = this.#preloaded;
    this.#processes = new ProcessPool({
      preloadUrl,
      settings,
      network: options.network,
      hosts: options.hosts,
      support: () => this.#preloaded.processes,
    });
    const [processes, standbys] = [this.#processes, this.#standbys];
    this.registry = new Registry({
      clock,
      opener,
      processes,
      codecs,
      settings,
      report: (event) => this.report(event),
      onUndelivered: (message) => this.#preloaded.onUndelivered(message),
      onUnhandled: (failure, actor) => this.raise(failure, describe(actor)),
      spawn: (place, init, ownerUid) => this.start(place, init, { ownerUid }),
      stop: (record, options) => this.stop(record, options),
    });
    const systemPlace = this.registry.place;
    this.#context = { clock, settings, preloadUrl, opener, processes, standbys, systemPlace };
  }

  /** Makes a ref that the system holds; `target.address` may change. */
  refTo<P>(target: { readonly address: Address }): ActorRef<P> {
    return new ActorRef<P>(this.registry.endpoint.outbox, target);
  }

  /** Begins to start the process of an actor, so that several processes start at the same time. */
  prepare({ name, placement, process }: SpawnPlace): void {
    if (placement !== "process") return;
    if (this.#refusesStarts) return;
    const prepared = this.#preloaded.load().then(() => this.#processes.host(process ?? name));
    prepared.catch(() => {}); // reported by `start`, which comes next
  }

  /**
   * Starts a warm standby: a thread in the actor's process that loads the modules of its next incarnation and waits. Returns
   * false if there is nothing left to start.
   */
  prepareStandby({
    name,
    module,
    placement = "thread",
    process,
    standbyModules,
    resourceLimits,
    modules,
  }: SpawnPlace): boolean {
    if (standbyModules === undefined || placement === "main" || this.#refusesStarts) return false;
    const { preload } = this.#options;
    const moduleUrls = [preload, module, ...standbyModules].flatMap((url) => url?.href ?? []);
    const warmup = { name, moduleUrls, resourceLimits, modules };
    if (placement === "thread") return this.#standbys.prepareStandby(warmup);
    return this.#processes.prepareStandby(process ?? name, warmup);
  }

  /** Starts one incarnation and resolves once its `start` has resolved. */
  async start(place: SpawnPlace, init: unknown, answerable: Answerable = {}): Promise<ActorRecord> {
    await this.#preloaded.load();
    const { name, placement = "thread", startDeadlineMs = defaultStartDeadlineMs } = place;
    this.#refuseTakenName(name);
    if (placement !== "process" && place.process !== undefined)
      throw processWithoutPlacement(name, placement);
    let host: HostProcess | undefined;
    if (placement === "process") {
      // The process may begin to leave while this waits, when its last actor ends: then get a new one.
      do host = await this.#processes.host(place.process ?? name);
      while (host.isLeaving);
    }
    this.#refuseTakenName(name); // another may have taken it meanwhile
    if (this.#refusesStarts) throw startedTooLate(name);
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

  /** Refuses all further starts, because the system is about to close. */
  refuseStarts(): void {
    this.#refusesStarts = true;
  }

  /** Ids of the processes that it has started. */
  get pids(): readonly number[] {
    return this.#processes.pids;
  }

  /** Listens for other hosts that want to join. */
  async invite(): Promise<Invitation> {
    await this.#preloaded.load();
    return await this.#processes.invite();
  }

  /** Resolves once all other hosts have joined. @throws {TroupeError} `HOST_MISSING` naming those that did not join in time */
  hostsJoined(deadlineMs: number): Promise<void> {
    return this.#processes.hostsJoined(deadlineMs);
  }

  /** Numbers of the hosts that have not joined or are lost. */
  get hostsMissing(): readonly number[] {
    return this.#processes.hostsMissing;
  }

  /** Ends all processes and warm standbys. No actor may live in them any more. */
  async close(failure?: Failure): Promise<void> {
    await Promise.all([this.#processes.close(failure), this.#standbys.close()]);
  }

  /** Passes an event to the listener, with the role of its actor. Errors of the listener become process warnings. */
  report(event: RuntimeEvent): void {
    try {
      this.#options.onEvent?.("actor" in event ? { ...event, ...this.#roles.get(event.actor) } : event);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /** Reports an unhandled failure; without `onUnhandled` it ends the process. */
  raise(failure: Failure, actor: string): void {
    const error = unhandled(failure, actor);
    if (this.#options.onUnhandled !== undefined) this.#options.onUnhandled(error);
    else
      queueMicrotask(() => {
        throw error;
      });
  }

  #refuseTakenName(name: string): void {
    const holder = this.registry.actors.livingNamed(name);
    if (holder !== undefined) throw nameTaken(name, holder.address);
  }

  #launch(place: SpawnPlace, init: unknown, linkPlace: LinkPlace, answerable: Answerable): ActorRecord {
    const address = this.addresses.next(place.name);
    const launched = launch(this.#context, place, address, this.#preloaded.codecs.encode(init), linkPlace);
    const role = roleOf(place);
    this.#roles.set(place.name, role);
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

function roleOf({ role, index }: SpawnPlace): ActorRole {
  return { ...(role !== undefined && { role }), ...(index !== undefined && { index }) };
}
