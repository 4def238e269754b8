import {
  advanceProgress,
  beginProgress,
  type OptimizerProgress,
  type SavedProgress,
} from "../../../compute/optim/index.ts";
import { microBatchesAt } from "../../../compute/samples.ts";
import { maySkip } from "../../../job/anomalies/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import type { InitialState, ShardPlan, SnapshotProtocol } from "../../protocols/index.ts";
import { FrozenUpdates } from "./frozen-updates.ts";

/**
 * The optimizer's progress before each step: the number of updates, and the loss scale. Skipped steps are not counted, so if
 * steps may be skipped a step's progress is known once the one before has ended. A frozen parameter lags by the updates that it
 * was frozen in.
 */
export class OptimizerClock {
  readonly #plan: ShardPlan;
  readonly #before = new Map<number, OptimizerProgress>();
  readonly #frozen: FrozenUpdates;
  /** Micro-batches of the steps of which a script decides how many there are. */
  readonly #counted = new Map<number, number>();
  /** Checkpoints that still wait for the optimizer's progress, by the step that their state follows. */
  readonly #saving = new Map<number, ActorRef<SnapshotProtocol>>();
  /** The last step whose trained parameters are known. */
  #lastScored: number;

  constructor(plan: ShardPlan) {
    this.#plan = plan;
    const { step } = plan.initial;
    this.#lastScored = step - 1;
    const saved = progressOf(plan.initial);
    const begin = beginProgress(saved, plan.precision.lossScale);
    this.#before.set(step, begin);
    this.#frozen = new FrozenUpdates(step, begin.numUpdates, saved?.frozenUpdates);
  }

  /** @throws if steps may be skipped and the one before has not ended */
  before(step: number): OptimizerProgress {
    const { initial } = this.#plan;
    const known = this.#before.get(step);
    if (known !== undefined) return known;
    if (maySkipUpdates(this.#plan))
      throw new Error(`[shard] it is not known yet how far step ${step} begins`);
    const { numUpdates } = beginProgress(progressOf(initial), undefined);
    return { numUpdates: numUpdates + step - initial.step };
  }

  /** The divisor that turns a step's summed gradient into the gradient of the mean loss. */
  divisor(step: number): number {
    const { numMicroBatches, training } = this.#plan;
    const ofStep = this.#counted.get(step) ?? microBatchesAt(training.sampler, numMicroBatches, step);
    return ofStep * (this.before(step).lossScale?.scale ?? 1);
  }

  /** @param numMicroBatches - of all replicas in `step`, if not as planned */
  count(step: number, numMicroBatches: number): void {
    this.#counted.set(step, numMicroBatches);
  }

  /** @param frozen - names of the parameters that steps do not train from `step` on */
  freeze(step: number, frozen: readonly string[]): void {
    this.#frozen.begin(step, this.before(step).numUpdates, frozen);
  }

  /** @returns names of the parameters that a step does not train */
  frozenAt(step: number): ReadonlySet<string> {
    return this.#frozen.at(step);
  }

  /** @returns by name, the number of updates before a step in which each of these parameters was frozen, if any */
  frozenUpdatesBefore(step: number, names: readonly string[]): Readonly<Record<string, number>> {
    return this.#frozen.before(step, this.before(step).numUpdates, names);
  }

  /** A step has ended, with an update or without. */
  advance(step: number, skipped: boolean): void {
    this.#before.set(step + 1, advanceProgress(this.before(step), this.#plan.precision.lossScale, skipped));
    this.#report(step);
  }

  /** Drops everything before a step whose end has been reported. */
  forget(step: number): void {
    this.#before.delete(step);
    this.#counted.delete(step);
    this.#frozen.forget(step);
  }

  /** Reports the optimizer's progress to a checkpoint of the state after `step`, once it is known. */
  reportAfter(step: number, checkpointer: ActorRef<SnapshotProtocol>): void {
    this.#saving.set(step, checkpointer);
    this.#report(step);
  }

  /** Notes that it is known which parameters `step` trains. */
  scored(step: number): void {
    this.#lastScored = step;
    this.#report(step);
  }

  #report(step: number): void {
    const { generation } = this.#plan;
    const checkpointer = this.#saving.get(step);
    if (checkpointer === undefined || this.#lastScored < step) return;
    if (maySkipUpdates(this.#plan) && !this.#before.has(step + 1)) return;
    checkpointer.tell("progress", { generation, step: step + 1, progress: this.#savedBefore(step + 1) });
    this.#saving.delete(step);
  }

  #savedBefore(step: number): SavedProgress {
    const progress = this.before(step);
    const frozenUpdates = this.#frozen.before(step, progress.numUpdates);
    return Object.keys(frozenUpdates).length === 0 ? progress : { ...progress, frozenUpdates };
  }
}

function progressOf(initial: InitialState): SavedProgress | undefined {
  return "progress" in initial ? initial.progress : undefined;
}

/** @returns whether a step may be skipped: then no update begins, or is counted, before the step has been judged */
export function maySkipUpdates({ precision, anomalies }: ShardPlan): boolean {
  return precision.lossScale !== undefined || maySkip(anomalies);
}
