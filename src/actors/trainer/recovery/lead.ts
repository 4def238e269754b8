import { dirname } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
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
import { Conductor, type ConductorOptions } from "../../index.ts";
import type { InitialState, RankGroup, RunResult } from "../../protocols/index.ts";
import type { RunPlan } from "../plan/plan-run.ts";
import type { Start } from "../resume/start.ts";
import { LastGood } from "./last-good.ts";
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
  > {
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
    return await leadGenerations(ranks, { ...options, emit: (event) => saves.emit(event) }, saves);
  } catch (error) {
    saves.giveUp(error);
    throw error;
  }
}

async function leadGenerations(
  ranks: SupervisedRanks,
  options: LeadOptions,
  saves: ReportedSaves,
): Promise<RunResult> {
  const { plan, checkpointer, start, resume, emit, onStep } = options;
  const { deadlineMs } = plan.ranks.execution;
  const id = options.about().run?.id;
  const runId = typeof id === "string" ? id : undefined;
  const lastGood = new LastGood({ start, resume, runId, checkpointer, deadlineMs, emit });
  const recovery = new Recovery(ranks, lastGood);
  const losses = new LossRecord(start.initial.step, start.resumed?.state.recentLosses);
  const rule = plan.schedule.best;
  const best = rule && new BestStates(rule, start.resumed?.state.evaluations);
  /** The state that the present generation is to begin with, if a script loads it. */
  let loading: LoadedState | undefined;
  let at: RestartPoint = { initial: start.initial, sampler: plan.ranks.training.sampler };
  /** When the failure of the last generation was noticed, and when the present one had started. */
  let restart: { readonly noticedAtMs: number; readonly startedAtMs: number } | undefined;
  const listener: RunListener = {
    stepMade(step, lossNats, durationMs) {
      losses.note(step, lossNats);
      ranks.madeStep();
      onStep(durationMs);
    },
    saveBegun: (step) => saves.begun(step),
    saved(save) {
      lastGood.note(save);
      options.calls?.keep(save.step);
      saves.ended(save.step);
      // These steps are saved: earlier restarts no longer count.
      ranks.forgiveRestarts();
    },
    saveFailed: (step) => saves.ended(step),
  };
  const readable = (initial: InitialState, writers: RankGroup["writers"]): InitialState => {
    const isRelayed = options.isSpread && checkpointer !== undefined;
    if (!isRelayed || initial.kind !== "checkpoint" || initial.path.includes("://")) return initial;
    return { ...initial, reader: { readers: [checkpointer, ...writers], deadlineMs } };
  };
  for (const error of start.passedOver) emit(rejected(error));
  for (;;) {
    const { generation, group, hosts } = ranks;
    const { initial, sampler } = at;
    const training = { ...plan.ranks.training, sampler, recentLosses: losses.until(initial.step) };
    const groups = { ...plan.ranks.groups, hosts };
    const conductor = new Conductor(group, {
      ...options,
      schedule: plan.schedule,
      plan: { ...plan.ranks, groups, training, initial: readable(initial, group.writers), generation },
      calls: options.calls,
      best,
      stateAt: (step) => ({
        ...stateAt(plan, sampler, step),
        ...options.about(),
        recentLosses: losses.until(step),
        ...(best && { evaluations: best.until(step) }),
      }),
      listener,
      isOfCode,
      onPrepared: async (joinedAtMs) => {
        if (restart !== undefined) emit(restored(initial, { ...restart, joinedAtMs }));
        restart = undefined;
        if (loading?.call.kind === "load") loading.call.answer({ step: initial.step });
        loading = undefined;
        await options.onPrepared(joinedAtMs);
        ranks.arePrepared(options.calls !== undefined);
      },
    });
    try {
      return await Promise.race([conductor.lead(), overtaken(ranks, generation)]);
    } catch (error) {
      const noticedAtMs = performance.now();
      conductor.end();
      const { calls } = options;
      calls?.restart();
      if (error instanceof LoadedState) {
        loading = error;
        at = await recovery.load(error, at);
      } else if (calls !== undefined && (loading !== undefined || error instanceof FailedCall)) {
        const failed = loading === undefined ? (error as FailedCall) : new FailedCall(loading.call, error);
        loading = undefined;
        at = await recovery.without(failed, calls, generation, at);
      } else at = await recovery.after(error, generation, at);
      restart = { noticedAtMs, startedAtMs: performance.now() };
    }
  }
}

/**
 * Rejects when a new generation begins: one may end while its conductor waits for nothing but a save that only it could finish.
 * @throws {TroupeError} `ACTOR_DOWN`; the first cause where the group was given up
 */
async function overtaken(ranks: SupervisedRanks, generation: number): Promise<never> {
  await ranks.generationAfter(generation);
  throw new TroupeError("ACTOR_DOWN", {
    where: "lead",
    expected: `generation ${generation} of the rank group to go on`,
    got: "a new one",
    hint: "the run continues from its last good state",
  });
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
