import { mapTensors, type PassKey } from "../../../compute/parallel/index.ts";
import { Tensor } from "../../../compute/tensor/index.ts";
import { type BackwardOptions, checkLosses, type ForwardResult, type Losses } from "../../../job/index.ts";
import type { TensorBatch } from "../../../library/data/index.ts";
import type { WeighedBatch } from "./batch-source.ts";
import { needGradient, refuseDetached } from "./detached-loss.ts";
import type { GrantedStep } from "./granted-step.ts";
import { loopOrder } from "./loop-order.ts";
import type { ModelRunner } from "./model-runner.ts";
import type { PassLoss } from "./step-losses.ts";

/** A forward that waits for its backward. */
interface OpenForward {
  readonly key: PassKey;
  readonly loss: PassLoss;
  /** Whether it depends on a trainable parameter. */
  readonly isTrainable: boolean;
}

/** A micro-batch that a job's own loop trains by itself: it may have several forwards, each with one backward or none. */
export class LoopMicroBatch {
  readonly #step: GrantedStep;
  readonly #runner: ModelRunner;
  readonly #index: number;
  readonly #batch: WeighedBatch;
  /** By the loss that was returned; undefined once its backward is made. */
  readonly #forwards = new Map<Losses, OpenForward | undefined>();
  /** Losses with a backward. */
  readonly #trained: PassLoss[] = [];
  #isOver = false;

  constructor(step: GrantedStep, runner: ModelRunner, index: number) {
    this.#step = step;
    this.#runner = runner;
    this.#index = index;
    this.#batch = step.batch(index);
  }

  /** Its samples, until its end. */
  get batch(): TensorBatch {
    return this.#batch.batch;
  }

  /** Whether it has given the step a gradient. */
  get isTrained(): boolean {
    return this.#trained.length > 0;
  }

  /** Whether the loop may still train it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** @param body - computes a loss */
  forward<R extends ForwardResult>(body: () => R): R {
    const key = { microBatch: this.#index, chunk: 0, repeat: this.#forwards.size };
    let result: R | undefined;
    let isTrainable = false;
    const compute = (): Losses => {
      result = body();
      const losses = lossesIn(result);
      isTrainable = needGradient(losses);
      return losses;
    };
    return this.#step.forward(key, compute, (loss) => {
      // The tape's own tensors go with its walk: the loop gets others, of the same memory.
      const given = mapTensors(result, (each) => each.detach()) as R;
      this.#forwards.set(lossesIn(given), { key, loss, isTrainable });
      return given;
    }) as R;
  }

  /** The backward of one of its forwards. @throws {TroupeError} `LOOP_ORDER` */
  backward(given: ForwardResult, { only }: BackwardOptions): void {
    const losses = lossesIn(given);
    if (!this.#forwards.has(losses))
      throw loopOrder(
        "the loss of a rank.forward of this batch",
        "another tensor",
        "pass what rank.forward has returned",
      );
    const open = this.#forwards.get(losses);
    if (open === undefined)
      throw loopOrder(
        "one backward for each forward",
        "a second",
        "call rank.forward again, or add the losses up before",
      );
    if (!open.isTrainable) refuseDetached(this.#runner.model.module, "rank.backward");
    this.#forwards.set(losses, undefined);
    this.#trained.push(open.loss);
    this.#step.backward(open.key, undefined, only);
  }

  /** Ends its use by the loop: forwards without a backward are dropped. */
  end(): void {
    if (this.#isOver) return;
    if (this.isTrained) this.#step.add(this.#trained, this.#batch);
    this.#close();
  }

  /** Drops its work: the step will not be made. */
  abandon(): void {
    if (this.#isOver) return;
    for (const { onDevice } of this.#trained) onDevice?.dispose();
    this.#close();
  }

  #close(): void {
    this.#isOver = true;
    for (const open of this.#forwards.values()) {
      if (open === undefined) continue;
      this.#step.drop(open.key);
      open.loss.onDevice?.dispose();
    }
    this.#forwards.clear();
    this.#step.release(this.#index);
  }
}

/** @throws {TroupeError} `LOSS_INVALID` unless it is a scalar loss, or several by name */
function lossesIn(given: ForwardResult): Losses {
  const isRecord = typeof given === "object" && !(given instanceof Tensor || given instanceof Promise);
  const losses: unknown = isRecord ? given?.loss : given;
  checkLosses(losses, "rank.forward");
  return losses;
}
