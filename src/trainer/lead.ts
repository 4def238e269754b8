import { dirname } from "node:path";
import {
  type CheckpointerProtocol,
  Conductor,
  type InitialState,
  type Inspections,
  type RunResult,
} from "../actors/index.ts";
import { LossRecord, RewindRequest } from "../anomalies/index.ts";
import type { JsonValue, TrainerState } from "../checkpoint/index.ts";
import { passOver, type SampleCourse, samplesBefore } from "../data/index.ts";
import { errorTable, TroupeError } from "../errors.ts";
import { reportError, type TroupeEventBody } from "../events/index.ts";
import { type ActorRef, type Failure, firstCause, fromFailure } from "../runtime/index.ts";
import { LastGood } from "./last-good.ts";
import { courseOf, type RunPlan } from "./plan-run.ts";
import { Rewinds } from "./rewinds.ts";
import type { Start } from "./start.ts";
import type { SupervisedRanks } from "./supervised-ranks.ts";
import { ToldSaves } from "./told-saves.ts";

/** What leading a run needs beside the ranks. */
export interface LeadOptions {
  readonly plan: RunPlan;
  readonly start: Start;
  /** What the run goes on from, where that is a checkpoint or a folder of them. */
  readonly resume: string | undefined;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  readonly inspections: Inspections;
  readonly emit: (event: TroupeEventBody) => void;
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
  const saves = new ToldSaves(options.emit);
  try {
    return await leadLives(ranks, { ...options, emit: (event) => saves.tell(event) });
  } catch (error) {
    saves.giveUp(error);
    throw error;
  }
}

async function leadLives(ranks: SupervisedRanks, options: LeadOptions): Promise<RunResult> {
  const { plan, checkpointer, inspections, start, resume } = options;
  const { deadlineMs } = plan.ranks;
  const lastGood = new LastGood({ start, resume, checkpointer, deadlineMs, emit: options.emit });
  const rewinds = new Rewinds();
  const losses = new LossRecord(start.initial.step, start.resumed?.recentLosses);
  let course = plan.ranks.course;
  let initial = start.initial;
  const emit = (event: TroupeEventBody) => {
    lastGood.note(event);
    if (event.kind === "step.finished") {
      losses.note(event.step, event.lossNats);
      ranks.madeStep();
    }
    // Progress that cannot be lost any more.
    if (event.kind === "checkpoint.saved" || event.kind === "checkpoint.copied") ranks.forgiveRestarts();
    options.emit(event);
  };
  for (const error of start.passedOver) emit(rejected(error));
  for (;;) {
    const { life } = ranks;
    const conductor = new Conductor(ranks.group, {
      score: plan.score,
      plan: { ...plan.ranks, initial, course, life, recentLosses: losses.until(initial.step) },
      checkpointer,
      inspections,
      stateAt: (step) => ({ ...stateAt(plan, course, step), recentLosses: losses.until(step) }),
      emit,
      residentBytes: options.residentBytes,
      begin: options.begin,
    });
    try {
      return await Promise.race([conductor.lead(), overtaken(ranks, life)]);
    } catch (error) {
      conductor.end();
      let latestStep: number | undefined;
      if (error instanceof RewindRequest) {
        latestStep = rewinds.latestStep(error);
        await ranks.renew();
      } else if (isUnreadable(error)) {
        await lastGood.reject(initial, error);
        if (lastGood.start !== start) course = courseOf(lastGood.start, course.batchSize);
        await ranks.renew();
      } else {
        if (!isLoss(error)) throw error;
        refuseDeliberate(await ranks.lifeAfter(life));
      }
      initial = await lastGood.newest(latestStep);
      if (error instanceof RewindRequest) {
        course = passOver(course, initial.step, error.step + 1);
        rewinds.note(error.step, initial.step);
      }
      emit({ kind: "run.restored", step: initial.step, from: sourceOf(initial) });
    }
  }
}

/**
 * Rejects when the group lives anew: a life may end while its conductor has asked nothing of it, and waits for a save that only this
 * life could have fed.
 * @throws {TroupeError} `ACTOR_DOWN`; the first cause where the group was given up
 */
async function overtaken(ranks: SupervisedRanks, life: number): Promise<never> {
  await ranks.lifeAfter(life);
  throw new TroupeError(
    "ACTOR_DOWN",
    `[lead] expected life ${life} of the rank group to go on: it was started again (the run goes on from its last good state)`,
  );
}

/** The state that the ranks were to begin with cannot be read. */
function isUnreadable(error: unknown): error is TroupeError {
  return error instanceof TroupeError && UNREADABLE.includes(error.code);
}

const UNREADABLE: readonly string[] = ["CHECKPOINT_DAMAGED", "MEMORY_COPY_LOST"];

/** A checkpoint that could not be opened; the error names one of its files. */
function rejected(error: TroupeError): TroupeEventBody {
  return { kind: "checkpoint.rejected", path: dirname(String(error.fields.path)), error: reportError(error) };
}

/** A thread is gone, what it leaves undone was aborted, or one was stopped because another is gone. */
function isLoss(error: unknown): boolean {
  return error instanceof TroupeError && LOSSES.includes(error.code);
}

const LOSSES: readonly string[] = ["ACTOR_DOWN", "COLLECTIVE_ABORTED", "STOP_REQUESTED"];

/** An error with a code of ours was thrown on purpose: the same step would throw it again. */
function refuseDeliberate(failure: Failure | undefined): void {
  const cause = failure && firstCause(failure);
  if (cause?.code === undefined || ACCIDENTS.includes(cause.code)) return;
  if (cause.code in errorTable) throw fromFailure(cause);
}

/** Nobody meant to be too slow, or that what processes say to each other is lost on its way. */
const ACCIDENTS: readonly string[] = ["ACTOR_START_TIMEOUT", "FRAME_INVALID"];

function sourceOf({ kind }: InitialState): "memory" | "checkpoint" | "beginning" {
  return kind === "memory" || kind === "checkpoint" ? kind : "beginning";
}

function stateAt(plan: RunPlan, course: SampleCourse, step: number): TrainerState {
  const { seed, config, facts } = plan.ranks;
  const tokenizer = (facts.tokenizer ?? null) as JsonValue;
  const { batchSize } = course;
  return { step, seed, samplesConsumed: samplesBefore(course, step), batchSize, job: config, tokenizer };
}
