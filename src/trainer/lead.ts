import { type CheckpointerProtocol, Conductor, type Inspections, type RunResult } from "../actors/index.ts";
import type { JsonValue, TrainerState } from "../checkpoint/index.ts";
import { samplesBefore } from "../data/index.ts";
import { errorTable, TroupeError } from "../errors.ts";
import type { TroupeEventBody } from "../events/index.ts";
import { type ActorRef, type Failure, firstCause, fromFailure } from "../runtime/index.ts";
import type { SupervisedRanks } from "./cast.ts";
import type { RunPlan } from "./plan-run.ts";
import { startFromCheckpoint } from "./start.ts";

/** What leading a run needs beside the ranks. */
export interface LeadOptions {
  readonly plan: RunPlan;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  readonly inspections: Inspections;
  readonly emit: (event: TroupeEventBody) => void;
  /** Memory of all processes of the run, in bytes. */
  readonly residentBytes: () => number;
  /** Runs something as the beginning of a trace, when its turn has come. */
  readonly begin: <T>(kind: string, body: () => T) => T;
}

/**
 * Leads the ranks through a run, and when the group dies, through it again from the last good state: the newest
 * checkpoint this run has written, else where it began. Every step is a pure function of that state, so the losses are
 * those of an undisturbed run.
 * @throws the first cause: at once for an error that a job or a step threw on purpose, which would only come back; for
 *   a lost thread once the supervisor gives the group up
 */
export async function leadThroughRestarts(ranks: SupervisedRanks, options: LeadOptions): Promise<RunResult> {
  const { plan, checkpointer, inspections } = options;
  let initial = plan.ranks.initial;
  let saved: string | undefined;
  const emit = (event: TroupeEventBody) => {
    if (event.kind === "checkpoint.saved") {
      saved = event.path;
      // Progress that cannot be lost any more.
      ranks.forgiveRestarts();
    }
    options.emit(event);
  };
  for (;;) {
    const { life } = ranks;
    const conductor = new Conductor(ranks.group, {
      score: plan.score,
      plan: { ...plan.ranks, initial, life },
      checkpointer,
      inspections,
      stateAt: (step) => stateAt(plan, step),
      emit,
      residentBytes: options.residentBytes,
      begin: options.begin,
    });
    try {
      return await conductor.lead();
    } catch (error) {
      if (!isLoss(error)) throw error;
      refuseDeliberate(await ranks.lifeAfter(life));
      if (saved !== undefined) initial = (await startFromCheckpoint(saved, undefined)).initial;
    }
  }
}

/** A thread is gone, what it leaves undone was aborted, or one was stopped because another is gone. */
function isLoss(error: unknown): boolean {
  return error instanceof TroupeError && LOSSES.includes(error.code);
}

const LOSSES: readonly string[] = ["ACTOR_DOWN", "COLLECTIVE_ABORTED", "STOP_REQUESTED"];

/** An error with a code of ours was thrown on purpose: the same step would throw it again. */
function refuseDeliberate(failure: Failure | undefined): void {
  const cause = failure && firstCause(failure);
  if (cause?.code !== undefined && cause.code in errorTable) throw fromFailure(cause);
}

function stateAt(plan: RunPlan, step: number): TrainerState {
  const { seed, config, facts, course } = plan.ranks;
  const tokenizer = (facts.tokenizer ?? null) as JsonValue;
  const { batchSize } = course;
  return { step, seed, samplesConsumed: samplesBefore(course, step), batchSize, job: config, tokenizer };
}
