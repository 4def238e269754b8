import { advanceProgress, beginProgress, type OptimizerProgress } from "../optim/index.ts";
import type { ActorRef } from "../runtime/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { InitialState } from "./initial-state.ts";
import type { ShardPlan } from "./shard-plan.ts";

/**
 * How far the optimizer has come before each step: how many updates were made, and what the loss is multiplied by.
 * Skipped steps are not counted, so with a loss scale a step's place is known once the step before it has ended.
 */
export class OptimizerClock {
  readonly #plan: ShardPlan;
  readonly #before = new Map<number, OptimizerProgress>();
  /** A checkpoint that does not know yet how far the optimizer has come. */
  #saving: { readonly step: number; readonly checkpointer: ActorRef<CheckpointerProtocol> } | undefined;

  constructor(plan: ShardPlan) {
    this.#plan = plan;
    this.#before.set(plan.initial.step, beginProgress(progressOf(plan.initial), plan.lossScale));
  }

  /** @throws where a loss scale is at work and the step before has not ended */
  before(step: number): OptimizerProgress {
    const { initial, lossScale } = this.#plan;
    const known = this.#before.get(step);
    if (known !== undefined) return known;
    if (lossScale !== undefined) throw new Error(`[shard] step ${step} has no loss scale yet`);
    // Nothing is ever skipped without one.
    const { numUpdates } = beginProgress(progressOf(initial), undefined);
    return { numUpdates: numUpdates + step - initial.step };
  }

  /** What the gradients' sum of a step is divided by to be the gradient of the mean loss. */
  divisor(step: number): number {
    return this.#plan.numMicroBatches * (this.before(step).lossScale?.scale ?? 1);
  }

  /** A step has ended, with an update or without. */
  advance(step: number, skipped: boolean): void {
    this.#before.set(step + 1, advanceProgress(this.before(step), this.#plan.lossScale, skipped));
    this.#tell(step);
  }

  /** A step has been told of: nobody asks for what was before it any more. */
  forget(step: number): void {
    this.#before.delete(step);
  }

  /** Tells a checkpoint of the state after `step` how far the optimizer is, as soon as that is known. */
  tellAfter(step: number, checkpointer: ActorRef<CheckpointerProtocol>): void {
    this.#saving = { step, checkpointer };
    this.#tell(step);
  }

  #tell(step: number): void {
    const { life, lossScale } = this.#plan;
    if (this.#saving?.step !== step) return;
    if (lossScale !== undefined && !this.#before.has(step + 1)) return;
    this.#saving.checkpointer.tell("progress", { life, step: step + 1, progress: this.before(step + 1) });
    this.#saving = undefined;
  }
}

function progressOf(initial: InitialState): OptimizerProgress | undefined {
  return "progress" in initial ? initial.progress : undefined;
}
