import { readFileSync } from "node:fs";
import { TroupeError } from "../errors/index.ts";
import type { Invitation } from "./hosting/host-agent.ts";
import type { DeadLetters } from "./inspection/dead-letters.ts";
import { inspectActor } from "./inspection/inspect-actor.ts";
import { Watchdog } from "./inspection/watchdog.ts";
import type { ActorRef, AskOptions } from "./messaging/actor-ref.ts";
import type { OnDown } from "./messaging/watches.ts";
import { Pool, type PoolOptions, supervisionOf } from "./pool/pool.ts";
import type { ActorInspection } from "./protocol/actor-status.ts";
import { type Addressed, systemAddress } from "./protocol/address.ts";
import { AskTimeout, toFailure } from "./protocol/failure.ts";
import type { Protocol } from "./protocol/messages.ts";
import type { RuntimeEvent } from "./protocol/runtime-event.ts";
import { defaultStallAfterMs } from "./protocol/settings.ts";
import type { SpawnOptions, StopOptions } from "./protocol/spawn.ts";
import { Supervisor } from "./supervision/supervisor.ts";
import type { SupervisorOptions } from "./supervision/supervisor-options.ts";
import { Launcher, type LauncherOptions } from "./system/launcher.ts";
import type { Part } from "./system/part.ts";
import { checkTimeoutLadder } from "./timeout-ladder.ts";

/** Options of an {@link ActorSystem} or of a part of one. */
export interface PartOptions {
  readonly name: string;
  /** Receives the events of actors and messages; its errors become process warnings. */
  readonly onEvent?: (event: RuntimeEvent) => void;
  /**
   * Called with an `ACTOR_UNHANDLED` error for a failure that reaches no supervisor, owner, watcher or asker. By default the
   * error is thrown, which ends the process with its message and an exit code other than 0.
   */
  readonly onUnhandled?: (error: Error) => void;
  /** Time without progress after which `actor.stalled` is reported, in ms, or a function that returns it. Default: 30,000. */
  readonly stallAfterMs?: number | (() => number);
  /** Time that an actor waits for a user's function before `actor.stalled`, in ms. Default: {@link stallAfterMs}. */
  readonly callAfterMs?: () => number;
  /** Whether an actor should make progress now. By default all that are not idle should. */
  readonly isToProgress?: (actor: ActorInspection) => boolean;
}

/** Options of an {@link ActorSystem}. */
export interface SystemOptions extends PartOptions, LauncherOptions {}

/** The actors of one program: starts, links, supervises, inspects and stops them. */
export class ActorSystem {
  readonly name: string;
  readonly #launcher: Launcher;
  readonly #part: Part;
  readonly #supervisors: Supervisor[] = [];
  readonly #watchdog: Watchdog;
  #stopped: Promise<void> | undefined;

  /** @param launcher - of {@link part} @throws `TIMEOUT_LADDER` unless `stallAfterMs` is below `messaging.sendDeadlineMs` */
  constructor(options: SystemOptions, launcher?: Launcher) {
    this.name = options.name;
    const { stallAfterMs = defaultStallAfterMs } = options;
    const { isToProgress = ({ state }) => state !== "idle" } = options;
    const stallLimit = typeof stallAfterMs === "number" ? () => stallAfterMs : stallAfterMs;
    this.#launcher = launcher ?? new Launcher(options);
    const { clock, settings, registry } = this.#launcher;
    if (typeof stallAfterMs === "number")
      checkTimeoutLadder([
        { name: "stallAfterMs", ms: stallAfterMs },
        { name: "messaging.sendDeadlineMs", ms: settings.sendDeadlineMs },
      ]);
    this.#part = this.#launcher.open(options);
    this.#watchdog = new Watchdog({
      clock,
      stallAfterMs: stallLimit,
      callAfterMs: options.callAfterMs ?? stallLimit,
      inspect: () => this.inspect(),
      isToProgress,
      probe: () => registry.probe(this.#launcher.living(this.#part)),
      onStall: (stalled) => this.#launcher.report({ kind: "actor.stalled", ...stalled }),
    });
    this.#watchdog.start();
  }

  /**
   * Opens a part of this system: its actors reach all others of the system, but report to the part's own listeners, are
   * inspected by it, and end when it is stopped. The system closes when its last part is stopped; this one is its first.
   * @throws {TroupeError} `SYSTEM_STOPPED`
   */
  part(options: PartOptions): ActorSystem {
    this.#refuseWhenStopped(`part ${options.name}`);
    return new ActorSystem(options, this.#launcher);
  }

  /** Whether it has been asked to stop. */
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Id of this system, unique on the machine; the addresses of its actors carry it. */
  get id(): string {
    return this.#launcher.addresses.system;
  }

  /** The messages that were not delivered, with reasons. */
  get deadLetters(): DeadLetters {
    return this.#launcher.registry.deadLetters;
  }

  /**
   * Starts an actor and resolves once its `start` has resolved.
   * @throws {TroupeError} `ACTOR_NAME_TAKEN`, `ACTOR_START_TIMEOUT`, or the error of its module or `start`
   */
  async spawn<P extends Protocol<P>, Init = undefined>(options: SpawnOptions<Init>): Promise<ActorRef<P>> {
    this.#refuseWhenStopped(`spawn ${options.name}`);
    return this.#launcher.refTo<P>(await this.#launcher.start(options, options.init, { part: this.#part }));
  }

  /**
   * Starts a supervisor and its children in order, and resolves once the last has started.
   * @throws the error of the first child that cannot start; those before it are stopped again
   */
  async supervise(options: SupervisorOptions): Promise<Supervisor> {
    this.#refuseWhenStopped(`supervise ${options.name}`);
    const supervisor = new Supervisor(this.#launcher, this.#part, options);
    // Added now, because a stop must also find a supervisor that is still starting its children.
    this.#supervisors.push(supervisor);
    await supervisor.start();
    return supervisor;
  }

  /**
   * Finds an actor of this system, of any part, by name: the present incarnation, or, while it starts or is restarted, the next.
   * @throws {TroupeError} `ACTOR_UNKNOWN` with the nearest name; `ASK_TIMEOUT` if it has not started by the deadline
   */
  async find<P>(name: string, { deadlineMs }: AskOptions): Promise<ActorRef<P>> {
    const late = Promise.withResolvers<never>();
    const timer = this.#launcher.clock.after(deadlineMs, () =>
      late.reject(new AskTimeout(systemAddress, "find", deadlineMs)),
    );
    try {
      const address = await Promise.race([this.#launcher.registry.find(name), late.promise]);
      return this.#launcher.refTo<P>({ address });
    } finally {
      timer.cancel();
    }
  }

  /**
   * Starts a pool: `size` actors of one module behind one ref, which passes each message to one of them. They are supervised
   * one_for_one, and are named after the pool, with their index.
   * @throws {TroupeError} `SUPERVISOR_OPTION`, or the error of the first actor that cannot start
   */
  async pool<P extends Protocol<P>, Init = undefined>(options: PoolOptions<Init>): Promise<Pool<P>> {
    const { endpoint, actors } = this.#launcher.registry;
    const kindsOf = (name: string) => actors.livingNamed(name)?.kinds;
    const supervisor = await this.supervise(supervisionOf(options, kindsOf));
    return new Pool<P>(endpoint.outbox, supervisor.ref<P>(options.name), supervisor);
  }

  /**
   * Runs `body` as the root of a trace: the messages it sends, and all that they cause on any thread, are one trace. Every
   * `messaging.traceEvery`-th call is traced, the others are not.
   * @param kind - name of the span
   */
  begin<T>(kind: string, body: () => T): T {
    return this.#launcher.registry.begin(kind, body);
  }

  /** Calls `onDown` once when that actor has ended, also if it has already. */
  watch(ref: Addressed, onDown: OnDown): void {
    this.#launcher.registry.endpoint.watch(ref.address, onDown);
  }

  /** Removes the system's watches on that actor. */
  unwatch(ref: Addressed): void {
    this.#launcher.registry.endpoint.unwatch(ref.address);
  }

  /** Stops one actor: messages that have arrived are handled, then its `stop` runs. After the deadline it is terminated. */
  async stopActor(ref: Addressed, options: StopOptions = {}): Promise<void> {
    const record = this.#launcher.registry.actors.record(ref.address.uid);
    if (record !== undefined) await this.#launcher.stop(record, options);
  }

  /**
   * Returns the stack of an actor whose code does not return, for instance because of an endless loop.
   * @returns the lines of the stack; undefined if the thread is in native code, or the actor or its process has ended or is
   *   halted
   */
  async stackOf(ref: Addressed): Promise<string | undefined> {
    return await this.#launcher.registry.actors.record(ref.address.uid)?.worker.stack?.();
  }

  /** Does as {@link stackOf}, for the present incarnation of a name. */
  async stackOfNamed(name: string): Promise<string | undefined> {
    return await this.#launcher.registry.actors.livingNamed(name)?.worker.stack?.();
  }

  /** Whether this incarnation has started and not ended. */
  isLiving(ref: Addressed): boolean {
    return this.#launcher.registry.actors.livingRecord(ref.address.uid)?.hasStarted === true;
  }

  /** Returns the number of the host that an actor lives on; 0 for this host, and if the actor has ended. */
  hostOf(ref: Addressed): number {
    return this.#launcher.registry.actors.record(ref.address.uid)?.hostPlace ?? 0;
  }

  /** Kills the process that an actor lives in, on any host. Does nothing if that is this process, or the actor has ended. */
  killProcessOf(ref: Addressed): void {
    this.#launcher.registry.actors.record(ref.address.uid)?.place.host?.kill();
  }

  /**
   * Listens for other hosts that want to join. @returns the invitation that they need; it is secret
   * @throws {TroupeError} `NETWORK_ADDRESS` if others cannot reach this host at its address
   */
  invite(): Promise<Invitation> {
    return this.#launcher.invite();
  }

  /** Resolves once all other hosts have joined. @throws {TroupeError} `HOST_MISSING` naming those that did not in time */
  hostsJoined(deadlineMs: number): Promise<void> {
    return this.#launcher.processes.hostsJoined(deadlineMs);
  }

  /** Numbers of the hosts that never joined, or are lost and not replaced. */
  get hostsMissing(): readonly number[] {
    return this.#launcher.processes.hostsMissing;
  }

  /** Returns what every living actor is doing. It reads shared memory, so that it works also while actors are stuck. */
  inspect(): readonly ActorInspection[] {
    const { registry, clock } = this.#launcher;
    return this.#launcher
      .living(this.#part)
      .map((record) => inspectActor(record, clock.now(), (uid) => registry.actors.nameOf(uid)));
  }

  /** Returns the resident memory of all its processes, in bytes, including this one and warm standbys. */
  residentBytes(): number {
    return residentBytesOf([process.pid, ...this.#launcher.processes.pids]);
  }

  /**
   * Stops every supervisor and actor, the youngest first, and closes the system, unless other parts of it are still open. Other
   * hosts are released, and receive `failure` if there is one.
   * @throws {TroupeError} `ACTOR_STUCK` once all others have stopped, if one cannot be ended
   */
  stop(options: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#stopAll(options);
    return this.#stopped;
  }

  /** Stops the system at the end of an `await using` scope. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stopAll({ failure, ...options }: StopOptions): Promise<void> {
    // The failure is for other hosts only: an actor that is stopped because of it has not failed itself.
    this.#watchdog.stop();
    const errors: unknown[] = [];
    const attempt = async (stopping: Promise<void>): Promise<void> => {
      await stopping.catch((error: unknown) => errors.push(error));
    };
    for (const supervisor of this.#supervisors.toReversed()) await attempt(supervisor.stop(options));
    this.#part.refuseStarts();
    for (const record of this.#launcher.running(this.#part).toReversed())
      await attempt(this.#launcher.stop(record, options));
    await this.#launcher.close(this.#part, failure && toFailure(failure));
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
    for (const kind of kinds)
      bytes[kind] = 1024 * Number(new RegExp(`^${kind}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
  } catch {
    if (pid === process.pid) bytes.RssAnon = 1024 * process.resourceUsage().maxRSS;
  }
  return bytes;
}
