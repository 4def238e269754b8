import { dirname } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { LossRecord } from "../../../job/anomalies/index.ts";
import { reportError, type TroupeEventBody } from "../../../job/events/index.ts";
import type { JsonValue, TrainerState } from "../../../library/checkpoint/index.ts";
import { type SamplerState, samplesBefore } from "../../../library/data/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import { BestStates, type RunControl, type RunListener } from "../../engine/conductor/index.ts";
import { Conductor } from "../../index.ts";
import type { Inspections } from "../../inspect/index.ts";
import type { CheckpointerProtocol, InitialState, RankGroup, RunResult } from "../../protocols/index.ts";
import type { RunPlan } from "../plan/plan-run.ts";
import type { Start } from "../resume/start.ts";
import { LastGood } from "./last-good.ts";
import { Recovery, type TakeUp } from "./recovery.ts";
import { ReportedSaves } from "./reported-saves.ts";
import type { SupervisedRanks } from "./supervised-ranks.ts";

/** What leading a run needs beside the ranks. */
export interface LeadOptions {
  readonly plan: RunPlan;
  readonly start: Start;
  /** What a manifest says of the run beside where it stands, as far as it is known by then. */
  readonly about: () => Pick<TrainerState, "run" | "recipe" | "base">;
  /** What the run goes on from, where that is a checkpoint or a folder of them. */
  readonly resume: string | undefined;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  /** Whether ranks live on hosts that may not have the folder of checkpoints. */
  readonly isSpread: boolean;
  readonly inspections: Inspections;
  readonly control: RunControl;
  readonly emit: (event: TroupeEventBody) => void;
  /** Called once the group is known to work, before each first step of a generation. */
  readonly onPrepared: () => Promise<void>;
  /** Called with how long each step took, in ms. */
  readonly onStep: (durationMs: number) => void;
  /** Memory of all processes of the run, in bytes. */
  readonly residentBytes: () => number;
  /** Runs something as the beginning of a trace, when its turn has come. */
  readonly begin: <T>(kind: string, body: () => T) => T;
}

/**
 * Leads the ranks through a run, and when the group dies, through it again from the last good state: the copy in memory,
 * the newest checkpoint this run has written, else where it began. Every step is a pure function of that state, so the
 * losses are those of an undisturbed run. A run that goes back on purpose leaves out the batches that led it astray.
 * @throws the first cause: at once for an error that a job or a step threw on purpose, which would only come back; for
 *   a lost thread once the supervisor gives the group up
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
  const { plan, checkpointer, inspections, control, start, resume, emit, onStep } = options;
  const { deadlineMs } = plan.ranks.execution;
  const lastGood = new LastGood({ start, resume, runId: runIdOf(options), checkpointer, deadlineMs, emit });
  const recovery = new Recovery(ranks, lastGood);
  const losses = new LossRecord(start.initial.step, start.resumed?.state.recentLosses);
  const rule = plan.schedule.best;
  const best = rule && new BestStates(rule, start.resumed?.state.evaluations);
  let at: TakeUp = { initial: start.initial, sampler: plan.ranks.training.sampler };
  const listener: RunListener = {
    stepMade(step, lossNats, durationMs) {
      losses.note(step, lossNats);
      ranks.madeStep();
      onStep(durationMs);
    },
    saveBegun: (step) => saves.begun(step),
    saved(save) {
      lastGood.note(save);
      saves.ended(save.step);
      // Progress that cannot be lost any more.
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
      schedule: plan.schedule,
      plan: { ...plan.ranks, groups, training, initial: readable(initial, group.writers), generation },
      checkpointer,
      inspections,
      control,
      best,
      stateAt: (step) => ({
        ...stateAt(plan, sampler, step),
        ...options.about(),
        recentLosses: losses.until(step),
        ...(best && { evaluations: best.until(step) }),
      }),
      emit,
      listener,
      onPrepared: options.onPrepared,
      residentBytes: options.residentBytes,
      begin: options.begin,
    });
    try {
      return await Promise.race([conductor.lead(), overtaken(ranks, generation)]);
    } catch (error) {
      conductor.end();
      at = await recovery.after(error, generation, at);
      emit({ kind: "run.restored", step: at.initial.step, from: sourceOf(at.initial) });
    }
  }
}

/**
 * Rejects when a new generation begins: a generation may end while its conductor has asked nothing of it, and waits for a save that only this
 * generation could have fed.
 * @throws {TroupeError} `ACTOR_DOWN`; the first cause where the group was given up
 */
async function overtaken(ranks: SupervisedRanks, generation: number): Promise<never> {
  await ranks.generationAfter(generation);
  throw new TroupeError("ACTOR_DOWN", {
    where: "lead",
    expected: `generation ${generation} of the rank group to go on`,
    got: "a new one",
    hint: "the run goes on from its last good state",
  });
}

function runIdOf({ about }: LeadOptions): string | undefined {
  const id = about().run?.id;
  return typeof id === "string" ? id : undefined;
}

/** A checkpoint that could not be opened; the error names one of its files. */
function rejected(error: TroupeError): TroupeEventBody {
  return { kind: "checkpoint.rejected", path: dirname(String(error.fields.path)), error: reportError(error) };
}

function sourceOf({ kind }: InitialState): "memory" | "checkpoint" | "beginning" {
  return kind === "memory" || kind === "checkpoint" ? kind : "beginning";
}

function stateAt(plan: RunPlan, sampler: SamplerState, step: number): TrainerState {
  const { job, training } = plan.ranks;
  const { seed } = training;
  const { config, facts } = job;
  const tokenizer = (facts.tokenizer ?? null) as JsonValue;
  const { batchSize } = sampler;
  return { step, seed, samplesConsumed: samplesBefore(sampler, step), batchSize, job: config, tokenizer };
}
