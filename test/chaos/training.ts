import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Runtime, type RuntimeOptions, type TroupeEvent } from "../../src/entries/index.ts";
import { stampMs } from "../../src/job/events/index.ts";
import type { Workspace } from "../fixtures/run-tiny.ts";
import { Chance } from "./chance.ts";
import { writeJob } from "./edited-files.ts";
import { ActorThreads, type Fault, faults, type Placement, type Target } from "./faults.ts";

/** How a run is disturbed. */
export interface Disturbance {
  readonly placement: Placement;
  readonly seed: number;
  readonly steps: number;
  /** How long a step is made to take, by a pause in it. */
  readonly stepMs: number;
  /** When it is struck: at random, once in so many ms on average; or once when each of these steps is new. */
  readonly when: { readonly meanMs: number } | { readonly steps: readonly number[] };
  readonly saveEverySteps: number;
  /** Steps between copies of the state in memory, which a restart goes back to first; none unless given. */
  readonly copyEverySteps?: number;
  readonly options?: RuntimeOptions;
  readonly onEvent?: (event: TroupeEvent) => void;
  readonly onFault?: (fault: string, whom: string) => void;
}

/** The result of a disturbed training. */
export interface Survived {
  /** Effective training time: the share of the time that went into steps which were not lost. */
  readonly effective: number;
  readonly durationMs: number;
  readonly numFaults: ReadonlyMap<string, number>;
  /** Generations of the rank group after the first. */
  readonly numRestarts: number;
  /** Steps that were made again. */
  readonly numLostSteps: number;
  /** From a fault to the next new step, in ms. */
  readonly recoveriesMs: readonly number[];
  /** Losses that are not those of the undisturbed run, bit for bit; steps made again count as well. */
  readonly numOtherLosses: number;
  /** Saves whose start was reported and whose end was not. */
  readonly numOpenSaves: number;
  readonly error: Error | undefined;
}

const struckJob = new URL("../fixtures/jobs/struck.ts", import.meta.url);

/** The losses of the undisturbed run, without pauses: they do not depend on time. */
export async function undisturbedLosses(workspace: Workspace, steps: number): Promise<Float64Array> {
  const losses = new Float64Array(steps);
  await train(workspace, { steps }, {}, (event) => {
    if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
  });
  return losses;
}

/** Trains while actors, processes and ranks are struck at random, and compares every loss with the undisturbed run's. */
export async function trainUnderFaults(
  workspace: Workspace,
  undisturbed: Float64Array,
  disturbance: Disturbance,
): Promise<Survived> {
  const { placement, seed, steps, stepMs, saveEverySteps, copyEverySteps } = disturbance;
  const strikes = workspace.path(`strikes-${placement}-${seed}`);
  mkdirSync(strikes);
  const job = workspace.path(`job-${placement}-${seed}.ts`);
  writeJob(job);
  const account = new Account(undisturbed);
  const chance = new Chance(seed);
  using threads = new ActorThreads();
  using striker = new Striker(disturbance, account);
  const error = await train(
    workspace,
    {
      placement,
      steps,
      // A pause of a step's length is a stall only by its own measure: five of the longest.
      stallMs: 10 * stepMs,
      // Struck more often than it can save, a run would rightly be given up.
      maxRestarts: 1_000,
      checkpoint: {
        dir: workspace.path(`run-${placement}-${seed}`),
        everySteps: saveEverySteps,
        ...(copyEverySteps === undefined ? {} : { inMemoryEverySteps: copyEverySteps }),
      },
      ...disturbance.options,
    },
    { strikes, pauseMs: stepMs },
    (event, runtime) => {
      account.take(event);
      disturbance.onEvent?.(event);
      if (event.kind === "step.finished")
        striker.tookStep(event.step, { runtime, chance, threads, strikes, job, text: workspace.text });
    },
    pathToFileURL(job),
  ).then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  );
  return account.close(error);
}

async function train(
  workspace: Workspace,
  options: RuntimeOptions,
  config: Readonly<Record<string, unknown>>,
  onEvent: (event: TroupeEvent, runtime: Runtime) => void,
  job = struckJob,
): Promise<void> {
  await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, threadsPerRank: 1, ...options });
  runtime.events$.subscribe((event) => onEvent(event, runtime));
  await runtime.run(job, { data: workspace.text, cache: workspace.path("cache"), ...config });
}

/** Strikes from the first step on until the last, at times or at steps. */
class Striker implements Disposable {
  readonly #disturbance: Disturbance;
  readonly #account: Account;
  readonly #faults: readonly Fault[];
  readonly #stepsLeft: number[];
  #timer: NodeJS.Timeout | undefined;

  constructor(disturbance: Disturbance, account: Account) {
    const { placement, when } = disturbance;
    this.#disturbance = disturbance;
    this.#account = account;
    this.#faults = faults.filter(({ placements }) => placements.includes(placement));
    this.#stepsLeft = "steps" in when ? [...when.steps] : [];
  }

  tookStep(step: number, target: Target): void {
    const { when, steps } = this.#disturbance;
    if (step === steps) this[Symbol.dispose]();
    else if ("meanMs" in when && this.#timer === undefined) this.#strikeLater(when.meanMs, target);
    else if (step === this.#stepsLeft[0]) {
      this.#stepsLeft.shift();
      this.#strike(target);
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #strikeLater(meanMs: number, target: Target): void {
    this.#timer = setTimeout(() => {
      this.#strike(target);
      this.#strikeLater(meanMs, target);
    }, target.chance.wait(meanMs));
  }

  #strike(target: Target): void {
    const { name, strike } = target.chance.pick(this.#faults);
    const whom = strike(target);
    if (whom === undefined) return;
    this.#account.struck(name);
    this.#disturbance.onFault?.(name, whom);
  }
}

/** Keeps the books of a disturbed run. */
class Account {
  readonly #undisturbed: Float64Array;
  readonly #numFaults = new Map<string, number>();
  readonly #recoveriesMs: number[] = [];
  #beginMs = 0;
  #newestStep = 0;
  #newestAtMs = 0;
  /** Since when the next new step is disturbed. */
  #disturbedAtMs: number | undefined;
  /** Number and duration of the undisturbed new steps. */
  #calm = { steps: 0, ms: 0 };
  #numRestarts = 0;
  #numLostSteps = 0;
  #numOtherLosses = 0;
  readonly #openSaves = new Set<number>();

  constructor(undisturbed: Float64Array) {
    this.#undisturbed = undisturbed;
  }

  struck(fault: string): void {
    this.#numFaults.set(fault, (this.#numFaults.get(fault) ?? 0) + 1);
    this.#disturbedAtMs ??= stampMs();
  }

  take(event: TroupeEvent): void {
    if (event.kind === "actor.restarted" && event.actor === "rank-0") this.#numRestarts += 1;
    if (event.kind === "actor.failed") this.#disturbedAtMs ??= event.timeMs;
    if (event.kind === "step.finished") this.#tookStep(event.step, event.lossNats, event.timeMs);
    if (event.kind === "checkpoint.started") this.#openSaves.add(event.step);
    if (event.kind === "checkpoint.saved" || event.kind === "checkpoint.failed")
      this.#openSaves.delete(event.step);
  }

  close(error: Error | undefined): Survived {
    const durationMs = this.#newestAtMs - this.#beginMs;
    const calmStepMs = this.#calm.ms / this.#calm.steps;
    return {
      effective: Math.min(1, ((this.#newestStep - 1) * calmStepMs) / durationMs),
      durationMs,
      numFaults: this.#numFaults,
      numRestarts: this.#numRestarts,
      numLostSteps: this.#numLostSteps,
      recoveriesMs: this.#recoveriesMs,
      numOtherLosses: this.#numOtherLosses + (this.#undisturbed.length - this.#newestStep),
      numOpenSaves: this.#openSaves.size,
      error,
    };
  }

  #tookStep(step: number, lossNats: number, timeMs: number): void {
    if (!Object.is(lossNats, this.#undisturbed[step - 1])) this.#numOtherLosses += 1;
    if (step <= this.#newestStep) {
      this.#numLostSteps += 1;
      return;
    }
    if (this.#newestStep === 0) this.#beginMs = timeMs;
    else if (this.#disturbedAtMs === undefined) {
      this.#calm = { steps: this.#calm.steps + 1, ms: this.#calm.ms + timeMs - this.#newestAtMs };
    } else this.#recoveriesMs.push(timeMs - this.#disturbedAtMs);
    this.#disturbedAtMs = undefined;
    this.#newestStep = step;
    this.#newestAtMs = timeMs;
  }
}
