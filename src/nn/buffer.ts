import { TroupeError } from "../errors.ts";
import { noGrad, type Tensor } from "../tensor/index.ts";
import type { Initializer } from "./initializer.ts";
import { Parameter } from "./parameter.ts";

/**
 * A float32 tensor of a module that forward writes and no gradient trains: a running average. It is declared, bound to
 * memory and saved like a parameter, and reads the same through a whole step. What forward writes takes effect at the
 * step's end: the mean of all writes of the step, over its micro-batches and replicas. A constant is no buffer: it is a
 * tensor that the module holds or, where it is to be saved, a parameter that is not trainable.
 */
export class Buffer extends Parameter {
  #write: ((value: Tensor) => void) | undefined;

  /** @throws as {@link Parameter} does */
  constructor(shape: readonly number[], init: Initializer) {
    super(shape, init);
    this.trainable = false;
  }

  protected override get canTrain(): boolean {
    return false;
  }

  /**
   * Writes all elements. In evaluation, and where backward computes a block again, a runtime counts it for nothing; where
   * none runs the model it takes effect at once.
   * @param value - of the buffer's shape, any float dtype; stays the caller's
   * @throws {TroupeError} `PARAMETER_SHAPE`
   */
  write(value: Tensor): void {
    const { shape } = value;
    if (shape.join() !== this.shape.join()) {
      throw new TroupeError(
        "PARAMETER_SHAPE",
        {
          where: "Buffer.write",
          expected: `a tensor of shape [${this.shape}]`,
          got: `one of shape [${shape}]`,
          hint: "all of it is written at once",
        },
        { fields: { expected: this.shape, got: shape } },
      );
    }
    noGrad(() => (this.#write === undefined ? this.memory.copy_(value) : this.#write(value)));
  }

  /** Hands what is written to `write` in place of the memory. */
  writeThrough(write: (value: Tensor) => void): void {
    this.#write = write;
  }
}
