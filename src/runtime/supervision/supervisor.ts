import { TroupeError } from "../../errors/index.ts";
import type { Timer } from "../clock.ts";
import type { ActorRef } from "../messaging/actor-ref.ts";
import { type Down, type Failure, toFailure } from "../protocol/failure.ts";
import type { StopOptions } from "../protocol/spawn.ts";
import type { Launcher } from "../system/launcher.ts";
import type { Part } from "../system/part.ts";
import { Siblings } from "../system/siblings.ts";
import { backoffMs, isToRestart, RestartWindow, restartSet } from "./restart-policy.ts";
import { SupervisedChild } from "./supervised-child.ts";
import { type ChildSpec, checkOptions, type SupervisorOptions } from "./supervisor-options.ts";

interface Ended {
  readonly child: SupervisedChild;
  readonly down: Down;
}

/** Restarts its children when they end, as far as its restart window allows. */
export class Supervisor {
  readonly name: string;
  readonly #launcher: Launcher;
  readonly #part: Part;
  readonly #options: SupervisorOptions;
  /** The children in starting order; those of one wave are started together. */
  readonly #waves: readonly (readonly SupervisedChild[])[];
  readonly #window: RestartWindow<Down>;
  #ended: Ended[] = [];
  #recovery: Promise<void> | undefined;
  /** Whether children are being started, at first or again. Ends of others wait meanwhile: two starts at once would take the same names. */
  #isStarting = true;
  #stopping = false;
  #pause: { readonly timer: Timer; readonly resume: () => void } | undefined;

  /** @throws {TroupeError} `SUPERVISOR_OPTION` */
  constructor(launcher: Launcher, part: Part, options: SupervisorOptions) {
    const { restarts, withinMs } = checkOptions(options);
    this.name = options.name;
    this.#launcher = launcher;
    this.#part = part;
    this.#options = options;
    this.#window = new RestartWindow(restarts, withinMs);
    this.#waves = options.children.map((specs) => [specs].flat().map((spec) => this.#makeChild(spec)));
  }

  /**
   * Starts the children in order. If one cannot start, those before it are stopped and its error is thrown. One that fails once it has
   * started is restarted when the last has started.
   * @throws {TroupeError} `SYSTEM_STOPPED` if it is stopped meanwhile
   */
  start(): Promise<void> {
    const started = this.#startChildren();
    // A call of `stop` meanwhile waits until nothing is being started any more.
    this.#recovery = started.then(
      () => this.#recover(),
      () => {},
    );
    return started;
  }

  /** Returns the ref of a child, which always points to the child's present incarnation. */
  ref<P>(childName: string): ActorRef<P> {
    const ref = this.#children.find(({ name }) => name === childName)?.ref;
    if (ref !== undefined) return ref as ActorRef<P>;
    throw new TroupeError("SUPERVISOR_OPTION", {
      where: `supervisor ${this.name}`,
      expected: `one of its actors (${this.#children.map(({ name }) => name).join(", ")})`,
      got: childName,
      hint: "check the name",
      fields: { supervisor: this.name, child: childName },
    });
  }

  /** Forgets past restarts. Call it when the children make progress again. */
  forgiveRestarts(): void {
    this.#window.reset();
  }

  /**
   * Starts one more warm standby, for one of the children that name `standbyModules`: a thread that loads the modules of the
   * next incarnation and waits. One per call, so that the caller sets the pace; returns false if none is left to start.
   */
  prepareStandby(): boolean {
    return !this.#stopping && !this.#isStarting && this.#children.some((child) => child.prepareStandby());
  }

  /**
   * Restarts all children on purpose, but for those that outlive others: no failure is counted. If a recovery is under way, waits for that
   * instead.
   */
  async restart(): Promise<void> {
    if (!this.#isStarting && !this.#stopping) {
      this.#isStarting = true;
      const children = this.#children.filter(({ staysUp }) => !staysUp);
      this.#recovery = this.#renew(children[0] as SupervisedChild, children, undefined).then(() =>
        this.#recover(),
      );
    }
    await this.#recovery;
  }

  /** Stops the children, the last started first. @throws {TroupeError} `ACTOR_STUCK` at the end, if one cannot be ended */
  async stop(options: StopOptions = {}): Promise<void> {
    this.#giveUp();
    this.#pause?.timer.cancel();
    this.#pause?.resume();
    await this.#recovery;
    const stuck = await stopAll(this.#waves, { ...this.#stopOptions(), ...options });
    if (stuck !== undefined) throw stuck;
  }

  async #startChildren(): Promise<void> {
    const siblings = new Siblings();
    try {
      for (const child of this.#children) child.prepare();
      for (const wave of this.#waves) {
        if (this.#stopping) throw stoppedMeanwhile(this.name);
        const [failed] = await startAll(wave, siblings);
        if (failed !== undefined) throw failed.error;
      }
      this.#keepStandbys();
    } catch (error) {
      this.#giveUp();
      await stopAll(this.#waves, { reason: "a sibling could not start" });
      throw error;
    }
  }

  get #children(): readonly SupervisedChild[] {
    return this.#waves.flat();
  }

  /** Returns the waves with these children only, in order. */
  #wavesOf(children: readonly SupervisedChild[]): readonly (readonly SupervisedChild[])[] {
    const chosen = new Set(children);
    return this.#waves.map((wave) => wave.filter((child) => chosen.has(child)));
  }

  #makeChild(spec: ChildSpec): SupervisedChild {
    const onEnd = (down: Down): void => this.#onEnd({ child, down });
    const places = { launcher: this.#launcher, part: this.#part };
    const own = this.#options.warmStandby === true ? { standbyModules: [], ...spec } : spec;
    const child: SupervisedChild = new SupervisedChild(places, own, (name) => this.ref(name), onEnd);
    return child;
  }

  #keepStandbys(): void {
    if (this.#options.warmStandby === true && !this.#stopping)
      for (const child of this.#children) child.prepareStandby();
  }

  #onEnd(ended: Ended): void {
    if (this.#stopping) return;
    this.#ended.push(ended);
    if (!this.#isStarting) this.#recovery = this.#recover();
  }

  async #recover(): Promise<void> {
    this.#isStarting = true;
    for (
      let ended = this.#ended.shift();
      ended !== undefined && !this.#stopping;
      ended = this.#ended.shift()
    ) {
      if (isToRestart(ended.child.restart, ended.down.reason === "failed")) await this.#recoverFrom(ended);
    }
    this.#isStarting = false;
  }

  async #recoverFrom({ child, down }: Ended): Promise<void> {
    if (!this.#window.admit(this.#launcher.clock.now(), down)) return this.#escalate();
    await this.#waitBackoff();
    if (this.#stopping) return;
    await this.#renew(child, this.#endingWith(child), down.cause);
  }

  /** The children that are restarted after this one ended. */
  #endingWith(child: SupervisedChild): readonly SupervisedChild[] {
    const children = this.#children;
    const indices = restartSet(this.#options.strategy, children.indexOf(child), children.length);
    const chosen = indices.map((index) => children[index] as SupervisedChild);
    return child.outlives ? chosen : chosen.filter(({ staysUp }) => !staysUp);
  }

  async #renew(
    reason: SupervisedChild,
    affected: readonly SupervisedChild[],
    cause: Failure | undefined,
  ): Promise<void> {
    // Threads and processes load their modules while the present ones end. A failure may have spoilt its process.
    for (const child of affected.filter((child) => isToStart(child, reason)))
      child.prepareNext(cause === undefined || child.process !== reason.process);
    const options = { ...this.#stopOptions(), drain: false, reason: `restart after ${reason.name}` };
    const stuck = await stopAll(this.#wavesOf(affected), options);
    // Children that ended with it, or meanwhile with its process, are restarted too: their ends are not counted again.
    this.#ended = this.#ended.filter((other) => !affected.includes(other.child));
    // While an incarnation has not ended, no new one may start.
    if (stuck === undefined) await this.#restart(reason, affected, cause);
    else await this.#escalate(stuck);
  }

  async #restart(
    reason: SupervisedChild,
    affected: readonly SupervisedChild[],
    cause: Failure | undefined,
  ): Promise<void> {
    const toStart = affected.filter((child) => isToStart(child, reason));
    const siblings = new Siblings();
    for (const child of toStart) child.prepare();
    for (const wave of this.#wavesOf(toStart)) {
      if (this.#stopping) return;
      const failed = await startAll(wave, siblings);
      this.#ended.unshift(
        ...failed.map(({ child, error }) => ({ child, down: failedToStart(child, error) })),
      );
      if (failed.length > 0) return;
      for (const { name: actor, incarnation } of wave)
        this.#launcher.report({ kind: "actor.restarted", actor, incarnation, cause });
    }
    this.#keepStandbys();
    this.#options.onRestart?.({ child: reason.name, restarted: toStart.map(({ name }) => name), cause });
  }

  /** @param stuck - the error that prevents a restart; undefined if there were too many restarts */
  async #escalate(stuck?: unknown): Promise<void> {
    this.#giveUp();
    await stopAll(this.#waves, { ...this.#stopOptions(), drain: false, reason: "its supervisor gave up" });
    const failures = this.#window.causes.map(
      (down) => down.cause ?? (stuck === undefined ? keptStopping(down) : toFailure(stuck)),
    );
    const cause = failures[0] as Failure;
    if (this.#options.onEscalate !== undefined) this.#options.onEscalate(cause, failures);
    else this.#part.raise(cause, this.name);
  }

  /** Starts no child from here on. */
  #giveUp(): void {
    this.#stopping = true;
    for (const child of this.#children) child.expectNoNext();
  }

  /** Waits for the backoff; `stop` cuts it short. */
  #waitBackoff(): Promise<void> {
    const delayMs = backoffMs(this.#options.backoff, this.#window.causes.length);
    if (delayMs === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#pause = { timer: this.#launcher.clock.after(delayMs, resolve), resume: resolve };
    });
  }

  #stopOptions(): StopOptions {
    const { stopDeadlineMs } = this.#options;
    return stopDeadlineMs === undefined ? {} : { deadlineMs: stopDeadlineMs };
  }
}

const isToStart = (child: SupervisedChild, reason: SupervisedChild) =>
  child === reason || child.restart !== "temporary";

/** Starts all of them together, even if one fails; returns those that could not start. */
async function startAll(
  children: readonly SupervisedChild[],
  siblings: Siblings,
): Promise<readonly { readonly child: SupervisedChild; readonly error: unknown }[]> {
  const starts = await Promise.allSettled(children.map((child) => child.start(siblings)));
  return children.flatMap((child, index) => {
    const start = starts[index];
    return start?.status === "rejected" ? [{ child, error: start.reason }] : [];
  });
}

/** Stops all of them, the last started first, even if one fails; returns the first error. */
async function stopAll(
  waves: readonly (readonly SupervisedChild[])[],
  options: StopOptions,
): Promise<unknown> {
  let firstError: unknown;
  for (const wave of waves.toReversed()) {
    const stops = await Promise.allSettled(wave.toReversed().map((child) => child.stop(options)));
    firstError ??= stops.find((stop) => stop.status === "rejected")?.reason;
  }
  return firstError;
}

function stoppedMeanwhile(name: string): TroupeError {
  return new TroupeError("SYSTEM_STOPPED", {
    where: `supervisor ${name}`,
    expected: "no stop before its actors have started",
    got: "one",
    hint: "nothing needs to be done",
    fields: { supervisor: name },
  });
}

const keptStopping = ({ actor }: Down): Failure => toFailure(new Error(`${actor} stopped by itself`));

function failedToStart(child: SupervisedChild, error: unknown): Down {
  return { actor: child.name, incarnation: child.incarnation, reason: "failed", cause: toFailure(error) };
}
