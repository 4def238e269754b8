import { dirname } from "node:path";
import type { TroupeError } from "../../../errors/index.ts";
import { LossRecord } from "../../../job/anomalies/index.ts";
import { reportError, type TroupeEventBody } from "../../../job/events/index.ts";
import type { JsonValue, TrainerState } from "../../../library/checkpoint/index.ts";
import { type SamplerState, samplesBefore } from "../../../library/data/index.ts";
import {
  BestStates,
  type CallLog,
  FailedCall,
  LoadedState,
  type RunListener,
} from "../../engine/conductor/index.ts";
import { Conductor, type ConductorOptions, generationEnded } from "../../index.ts";
import type { InitialState, RankGroup, RunResult } from "../../protocols/index.ts";
import type { RunPlan } from "../plan/plan-run.ts";
import type { Start } from "../resume/start.ts";
import { LastGood, type LastGoodOptions } from "./last-good.ts";
import { isOfCode, Recovery, type RestartPoint } from "./recovery.ts";
import { ReportedSaves } from "./reported-saves.ts";
import type { SupervisedRanks } from "./supervised-ranks.ts";

/** Options of {@link leadThroughRestarts}, besides the ranks. */
export interface LeadOptions
  extends Pick<
      ConductorOptions,
      | "checkpointer"
      | "inspections"
      | "control"
      | "emit"
      | "load"
      | "hold"
      | "onPrepared"
      | "residentBytes"
      | "begin"
    >,
    Pick<LastGoodOptions, "holder"> {
  readonly plan: RunPlan;
  readonly start: Start;
  /** Fields of a manifest about the run, as far as they are known. */
  readonly about: () => Pick<TrainerState, "run" | "recipe" | "base">;
  /** The checkpoint, or folder of checkpoints, that the run resumed from, if any. */
  readonly resume: string | undefined;
  /** Whether ranks run on hosts that may not have the folder of checkpoints. */
  readonly isSpread: boolean;
  /** A script's calls, if they make the steps. */
  readonly calls?: CallLog | undefined;
  /** Called with how long each step took, in ms. */
  readonly onStep: (durationMs: number) => void;
}

/**
 * Leads the ranks through a run. When the group fails, restarts the run from the last good state: the copy in memory,
 * the newest checkpoint that this run has written, or its initial state. Every step is a pure function of that state,
 * so the losses equal those of an undisturbed run. A run that rewinds on purpose skips the batches that led it astray.
 * @throws the first cause: at once for an error that a job or a step threw on purpose, since it would be thrown again;
 * for a lost thread once the supervisor gives the group up
 */
export async function leadThroughRestarts(ranks: SupervisedRanks, options: LeadOptions): Promise<RunResult> {
  const saves = new ReportedSaves(options.emit);
  try {
    return await new Lead(ranks, { ...options, emit: (event) => saves.emit(event) }, saves).lead();
  } catch (error) {
    saves.giveUp(error);
    throw error;
  }
}

/** Leads one generation of the ranks after the other, and keeps what outlasts them. */
class Lead {
  readonly #ranks: SupervisedRanks;
  readonly #options: LeadOptions;
  readonly #saves: ReportedSaves;
  readonly #lastGood: LastGood;
  readonly #recovery: Recovery;
  readonly #losses: LossRecord;
  readonly #best: BestStates | undefined;
  /** The state with which the present generation begins. */
  #at: RestartPoint;
  /** That state, if a script loads it and the call has no answer yet. */
  #loading: LoadedState | undefined;
  /** When the failure of the last generation was noticed, and when the present one had started. */
  #restart: { readonly noticedAtMs: number; readonly startedAtMs: number } | undefined;

  constructor(ranks: SupervisedRanks, options: LeadOptions, saves: ReportedSaves) {
    const { plan, start } = options;
    const { state } = start.resumed ?? {};
    const { deadlineMs } = plan.ranks.execution;
    const id = options.about().run?.id;
    this.#ranks = ranks;
    this.#options = options;
    this.#saves = saves;
    this.#lastGood = new LastGood({
      ...options,
      runId: typeof id === "string" ? id : undefined,
      deadlineMs,
    });
    this.#recovery = new Recovery(ranks, this.#lastGood);
    this.#losses = new LossRecord(start.initial.step, state?.recentLosses);
    this.#best = plan.schedule.best && new BestStates(plan.schedule.best, state?.evaluations);
    this.#at = { initial: start.initial, sampler: plan.ranks.training.sampler };
  }

  async lead(): Promise<RunResult> {
    const { start, emit, calls } = this.#options;
    for (const error of start.passedOver) emit(rejected(error));
    for (;;) {
      const { generation } = this.#ranks;
      const conductor = this.#conductor(generation);
      try {
        return await Promise.race([conductor.lead(), overtaken(this.#ranks, generation)]);
      } catch (error) {
        const noticedAtMs = performance.now();
        conductor.end();
        calls?.restart();
        this.#at = await this.#pointAfter(error, generation);
        this.#restart = { noticedAtMs, startedAtMs: performance.now() };
      }
    }
  }

  /** Finds where the run goes on after the error that ended `generation`. @throws the error where it would be thrown again */
  #pointAfter(error: unknown, generation: number): Promise<RestartPoint> {
    const { calls } = this.#options;
    const loading = this.#loading;
    this.#loading = error instanceof LoadedState ? error : undefined;
    if (error instanceof LoadedState) return this.#recovery.load(error, this.#at);
    const failed = loading === undefined ? error : new FailedCall(loading.call, error);
    if (calls === undefined || !(failed instanceof FailedCall))
      return this.#recovery.after(error, generation, this.#at);
    return this.#recovery.without(failed, calls, generation, this.#at);
  }

  #conductor(generation: number): Conductor {
    const { group, hosts } = this.#ranks;
    const { plan, about } = this.#options;
    const { initial, sampler } = this.#at;
    return new Conductor(group, {
      ...this.#options,
      schedule: plan.schedule,
      plan: {
        ...plan.ranks,
        groups: { ...plan.ranks.groups, hosts },
        training: { ...plan.ranks.training, sampler, recentLosses: this.#losses.until(initial.step) },
        initial: this.#readable(initial, group.writers),
        generation,
      },
      calls: this.#options.calls,
      best: this.#best,
      stateAt: (step) => ({
        ...stateAt(plan, sampler, step),
        ...about(),
        recentLosses: this.#losses.until(step),
        ...(this.#best && { evaluations: this.#best.until(step) }),
      }),
      listener: this.#listener(),
      isOfCode,
      onPrepared: (joinedAtMs) => this.#noteStart(initial, joinedAtMs),
    });
  }

  /** The state as ranks on hosts without its folder read it. */
  #readable(initial: InitialState, writers: RankGroup["writers"]): InitialState {
    const { isSpread, checkpointer, plan } = this.#options;
    const isRelayed = isSpread && checkpointer !== undefined;
    if (!isRelayed || initial.kind !== "checkpoint" || initial.path.includes("://")) return initial;
    const { deadlineMs } = plan.ranks.execution;
    return { ...initial, reader: { readers: [checkpointer, ...writers], deadlineMs } };
  }

  #listener(): RunListener {
    return {
      stepMade: (step, lossNats, durationMs) => {
        this.#losses.note(step, lossNats);
        this.#ranks.madeStep();
        this.#options.onStep(durationMs);
      },
      saveBegun: (step) => this.#saves.begun(step),
      saved: (save) => {
        this.#lastGood.note(save);
        this.#options.calls?.keep(save.step);
        this.#saves.ended(save.step);
        // These steps are saved: earlier restarts no longer count.
        this.#ranks.forgiveRestarts();
      },
      saveFailed: (step) => this.#saves.ended(step),
    };
  }

  /** Reports that the present generation has its state, and answers the call that loads it. */
  async #noteStart(initial: InitialState, joinedAtMs: number): Promise<void> {
    const { emit, onPrepared, calls } = this.#options;
    if (this.#restart !== undefined) emit(restored(initial, { ...this.#restart, joinedAtMs }));
    this.#restart = undefined;
    if (this.#loading?.call.kind === "load") this.#loading.call.answer({ step: initial.step });
    this.#loading = undefined;
    await onPrepared(joinedAtMs);
    this.#ranks.arePrepared(calls !== undefined);
  }
}

/**
 * Rejects when a new generation begins: one may end while its conductor waits for nothing but a save that only it could finish.
 * @throws {TroupeError} `ACTOR_DOWN`; the first cause where the group was given up
 */
async function overtaken(ranks: SupervisedRanks, generation: number): Promise<never> {
  await ranks.generationAfter(generation);
  throw generationEnded("lead", generation);
}

/** The event for a checkpoint that could not be opened; the error names one of its files. */
function rejected(error: TroupeError): TroupeEventBody {
  return { kind: "checkpoint.rejected", path: dirname(String(error.fields.path)), error: reportError(error) };
}

/** The event for a generation that has the state with which it goes on. */
function restored(
  { kind, step }: InitialState,
  at: { readonly noticedAtMs: number; readonly startedAtMs: number; readonly joinedAtMs: number },
): TroupeEventBody {
  return {
    kind: "run.restored",
    step,
    from: kind === "memory" || kind === "checkpoint" ? kind : "beginning",
    startedMs: at.startedAtMs - at.noticedAtMs,
    joinedMs: at.joinedAtMs - at.noticedAtMs,
    durationMs: performance.now() - at.noticedAtMs,
  };
}

function stateAt({ ranks: { job, training } }: RunPlan, sampler: SamplerState, step: number): TrainerState {
  const { seed } = training;
  const tokenizer = (job.facts.tokenizer ?? null) as JsonValue;
  const { batchSize } = sampler;
  return { step, seed, samplesConsumed: samplesBefore(sampler, step), batchSize, job: job.config, tokenizer };
}
