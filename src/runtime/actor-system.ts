import { readFileSync } from "node:fs";
import { TroupeError } from "../errors/index.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Invitation } from "./hosting/host-agent.ts";
import type { HostsOptions } from "./hosting/hosts.ts";
import type { DeadLetters } from "./inspection/dead-letters.ts";
import { inspectActor } from "./inspection/inspect-actor.ts";
import { Watchdog } from "./inspection/watchdog.ts";
import type { ActorRef } from "./messaging/actor-ref.ts";
import type { OnDown } from "./messaging/watches.ts";
import type { ActorInspection } from "./protocol/actor-status.ts";
import type { Addressed } from "./protocol/address.ts";
import { toFailure } from "./protocol/failure.ts";
import type { Protocol } from "./protocol/messages.ts";
import type { RuntimeEvent } from "./protocol/runtime-event.ts";
import {
  defaultMessagingSettings,
  defaultStallAfterMs,
  type MessagingSettings,
} from "./protocol/settings.ts";
import type { SpawnOptions, StopOptions } from "./protocol/spawn.ts";
import { Supervisor } from "./supervision/supervisor.ts";
import type { SupervisorOptions } from "./supervision/supervisor-options.ts";
import { Launcher } from "./system/launcher.ts";
import { checkTimeoutLadder } from "./timeout-ladder.ts";
import type { Network } from "./transport/tcp/tcp-door.ts";

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
  /** Reports `actor.stalled` when an actor shows no progress for so long, which may be learned; 30,000 unless said otherwise. */
  readonly stallAfterMs?: number | (() => number);
  /** Reports `actor.stalled` when an actor waits for a user's code for so long; as {@link stallAfterMs} unless said otherwise. */
  readonly callAfterMs?: () => number;
  /** Which actors are to show progress at the moment; all that are not idle unless said otherwise. */
  readonly isToProgress?: (actor: ActorInspection) => boolean;
  readonly clock?: Clock;
  /** How its processes reach each other over TCP; by Unix sockets and shared memory of this machine unless said. */
  readonly network?: Network;
  /** What it is to know of other hosts, which start processes for it; needs {@link network}. None unless said. */
  readonly hosts?: HostsOptions;
}

/** All actors of one program: starts and stops them, joins them, and knows how each is doing. */
export class ActorSystem {
  readonly name: string;
  readonly #launcher: Launcher;
  readonly #supervisors: Supervisor[] = [];
  readonly #watchdog: Watchdog;
  #stopped: Promise<void> | undefined;

  /** @throws {TroupeError} `TIMEOUT_LADDER` unless `stallAfterMs` is shorter than `messaging.sendDeadlineMs` */
  constructor(options: SystemOptions) {
    this.name = options.name;
    const { stallAfterMs = defaultStallAfterMs, clock = systemClock } = options;
    const { isToProgress = ({ state }) => state !== "idle" } = options;
    const stallLimit = typeof stallAfterMs === "number" ? () => stallAfterMs : stallAfterMs;
    const settings = { ...defaultMessagingSettings, ...options.messaging };
    if (typeof stallAfterMs === "number") {
      checkTimeoutLadder([
        { name: "stallAfterMs", ms: stallAfterMs },
        { name: "messaging.sendDeadlineMs", ms: settings.sendDeadlineMs },
      ]);
    }
    this.#launcher = new Launcher({
      clock,
      settings,
      preload: options.preload,
      network: options.network,
      hosts: options.hosts,
      onEvent: options.onEvent,
      onUnhandled: options.onUnhandled,
    });
    this.#watchdog = new Watchdog({
      clock,
      stallAfterMs: stallLimit,
      callAfterMs: options.callAfterMs ?? stallLimit,
      inspect: () => this.inspect(),
      isToProgress,
      probe: () => this.#launcher.registry.probe(),
      onStall: (stalled) => this.#launcher.report({ kind: "actor.stalled", ...stalled }),
    });
    this.#watchdog.start();
  }

  /** Tells this system from all others, in this process and on its machine: what its actors' addresses say. */
  get id(): string {
    return this.#launcher.addresses.system;
  }

  /** Messages that were not delivered, and why. */
  get deadLetters(): DeadLetters {
    return this.#launcher.registry.deadLetters;
  }

  /**
   * Starts an actor and resolves once its `start` has.
   * @throws {TroupeError} `ACTOR_NAME_TAKEN`, `ACTOR_START_TIMEOUT`, or what its module or `start` threw
   */
  async spawn<P extends Protocol<P>, Init = undefined>(options: SpawnOptions<Init>): Promise<ActorRef<P>> {
    this.#refuseWhenStopped(`spawn ${options.name}`);
    return this.#launcher.refTo<P>(await this.#launcher.start(options, options.init));
  }

  /**
   * Starts a supervisor and its children in order, and resolves once the last has started.
   * @throws what the first child that cannot start threw; those before it are stopped again
   */
  async supervise(options: SupervisorOptions): Promise<Supervisor> {
    this.#refuseWhenStopped(`supervise ${options.name}`);
    const supervisor = new Supervisor(this.#launcher, options);
    // From here on: a stop must also find one that is still starting its children.
    this.#supervisors.push(supervisor);
    await supervisor.start();
    return supervisor;
  }

  /**
   * Runs `body` as the beginning of a trace: what it sends, and all that this causes, on whatever threads, is one trace. Of
   * all beginnings each `messaging.traceEvery`-th is traced, and nothing of the others is.
   * @param kind - what begins, as its span is called
   */
  begin<T>(kind: string, body: () => T): T {
    return this.#launcher.registry.begin(kind, body);
  }

  /** Calls `onDown` once when that actor has ended, also when it has already. */
  watch(ref: Addressed, onDown: OnDown): void {
    this.#launcher.registry.endpoint.watch(ref.address, onDown);
  }

  /** Takes the system's watches on that actor back. */
  unwatch(ref: Addressed): void {
    this.#launcher.registry.endpoint.unwatch(ref.address);
  }

  /** Stops one actor: what has arrived is handled, its `stop` runs, and after the deadline it is ended by force. */
  async stopActor(ref: Addressed, options: StopOptions = {}): Promise<void> {
    const record = this.#launcher.registry.census.record(ref.address.uid);
    if (record !== undefined) await this.#launcher.stop(record, options);
  }

  /**
   * Where the code of an actor is that does not come back, an endless loop for instance.
   * @returns the lines of a stack; undefined where it is in native code, or the actor or its process has ended or stands still
   */
  async stackOf(ref: Addressed): Promise<string | undefined> {
    return await this.#launcher.registry.census.record(ref.address.uid)?.worker.stack?.();
  }

  /** As {@link stackOf}, of the present incarnation of a name. */
  async stackOfNamed(name: string): Promise<string | undefined> {
    return await this.#launcher.registry.census.livingNamed(name)?.worker.stack?.();
  }

  /** The host that an actor lives on, by its number among the hosts: 0 for this one, and where it has ended. */
  hostOf(ref: Addressed): number {
    return this.#launcher.registry.census.record(ref.address.uid)?.hostPlace ?? 0;
  }

  /** Ends the process that an actor lives in, on whatever host; nothing where that is this one, or it has ended. */
  killProcessOf(ref: Addressed): void {
    this.#launcher.registry.census.record(ref.address.uid)?.place.host?.kill();
  }

  /**
   * Opens the door, so that other hosts can join.
   * @returns what they need for it, and nobody else may know
   * @throws {TroupeError} `NETWORK_ADDRESS` where others cannot reach this host as it was told
   */
  invite(): Promise<Invitation> {
    return this.#launcher.invite();
  }

  /**
   * Resolves once all other hosts have joined.
   * @throws {TroupeError} `HOST_MISSING` naming those that did not come within the deadline
   */
  hostsJoined(deadlineMs: number): Promise<void> {
    return this.#launcher.hostsJoined(deadlineMs);
  }

  /** The hosts that are to be there and are not, by number: they never came, or are lost and not replaced. */
  get hostsMissing(): readonly number[] {
    return this.#launcher.hostsMissing;
  }

  /** What every living actor is doing, read from shared memory: it answers also while they are stuck. */
  inspect(): readonly ActorInspection[] {
    const { registry, clock } = this.#launcher;
    return registry.census.living.map((record) =>
      inspectActor(record, clock.now(), (uid) => registry.census.nameOf(uid)),
    );
  }

  /** Memory of all its processes, this one and those included that wait to take another's place. */
  residentBytes(): number {
    return residentBytesOf([process.pid, ...this.#launcher.pids]);
  }

  /**
   * Stops every supervisor and actor, the youngest first, and closes the system; other hosts are let go, and told of
   * `failure` where there is one.
   * @throws {TroupeError} `ACTOR_STUCK` once all others have stopped, when one cannot be ended
   */
  stop(options: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#stopAll(options);
    return this.#stopped;
  }

  /** Stops the system where `await using` leaves its scope. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stopAll({ failure, ...options }: StopOptions): Promise<void> {
    // What the run failed with is for other hosts: an actor that is stopped for it has not failed itself.
    const { registry } = this.#launcher;
    this.#watchdog.stop();
    const errors: unknown[] = [];
    const attempt = async (stopping: Promise<void>): Promise<void> => {
      await stopping.catch((error: unknown) => errors.push(error));
    };
    for (const supervisor of this.#supervisors.toReversed()) await attempt(supervisor.stop(options));
    this.#launcher.refuseStarts();
    for (const record of registry.census.running.toReversed())
      await attempt(this.#launcher.stop(record, options));
    registry.endpoint.close();
    await this.#launcher.close(failure && toFailure(failure));
    if (errors.length > 0) throw errors[0];
  }

  #refuseWhenStopped(where: string): void {
    if (this.#stopped === undefined) return;
    throw new TroupeError("SYSTEM_STOPPED", {
      where,
      expected: "a running system",
      got: `${this.name}, which has been stopped`,
      hint: "make a new one",
    });
  }
}

const kinds = ["RssAnon", "RssFile", "RssShmem"] as const;

/** Memory that processes hold, in bytes; what several of them map of files and shared memory is counted once, at its largest. */
function residentBytesOf(pids: readonly number[]): number {
  const held = pids.map(heldBy);
  const most = (kind: (typeof kinds)[number]): number => Math.max(...held.map((bytes) => bytes[kind]));
  return held.reduce((sum, { RssAnon }) => sum + RssAnon, most("RssFile") + most("RssShmem"));
}

/** Nothing of a process that has ended; of this one, where no file can be opened, the most it has held. */
function heldBy(pid: number): Record<(typeof kinds)[number], number> {
  const bytes = { RssAnon: 0, RssFile: 0, RssShmem: 0 };
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    for (const kind of kinds) {
      bytes[kind] = 1024 * Number(new RegExp(`^${kind}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
    }
  } catch {
    if (pid === process.pid) bytes.RssAnon = 1024 * process.resourceUsage().maxRSS;
  }
  return bytes;
}
