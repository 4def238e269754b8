import { TroupeError } from "../../../errors/index.ts";
import { type DType, noGrad, type Tensor } from "../../tensor/index.ts";
import type { InitializerLike } from "./initializer.ts";
import { Parameter } from "./parameter.ts";

/** Options of a buffer. */
export interface BufferOptions {
  /** Other dtypes than float32 make it a constant. Default: float32. */
  readonly dtype?: DType;
  /** Whether checkpoints contain it; otherwise each rank initializes its own. Default: true. */
  readonly persistent?: boolean;
}

/**
 * A tensor of a module that no gradient trains, like torch's buffers: a running average that forward writes, or a constant
 * such as position ids, a mask or a table. It keeps its dtype in any precision, is declared and bound to memory like a
 * parameter, and is saved if it is persistent.
 *
 * A persistent float32 buffer may be written. It keeps its value during a step; at the end of the step it becomes the mean of
 * the values written in it, over micro-batches and replicas.
 */
export class ModuleBuffer extends Parameter {
  readonly persistent: boolean;
  #write: ((value: Tensor) => void) | undefined;

  /** @throws as {@link Parameter} */
  constructor(
    shape: readonly number[],
    init: InitializerLike,
    { dtype = "float32", persistent = true }: BufferOptions = {},
  ) {
    super(shape, init, dtype);
    this.persistent = persistent;
  }

  /** Whether it cannot be written. */
  get isConstant(): boolean {
    return this.dtype !== "float32" || !this.persistent;
  }

  protected override get canTrain(): boolean {
    return false;
  }

  /**
   * Writes all elements. During evaluation and recomputation a write has no effect; outside a runtime it takes effect at once.
   * @param value - of the buffer's shape, any float dtype; the caller keeps it
   * @throws {TroupeError} `PARAMETER_SHAPE`; `MODULE_STATE` for a constant
   */
  write(value: Tensor): void {
    if (this.isConstant) throw writtenConstant(this);
    const { shape } = value;
    if (shape.join() !== this.shape.join())
      throw new TroupeError("PARAMETER_SHAPE", {
        where: "ModuleBuffer.write",
        expected: `a tensor of shape [${this.shape}]`,
        got: `one of shape [${shape}]`,
        hint: "all of it is written at once",
        fields: { expected: this.shape, got: shape },
      });
    noGrad(() => (this.#write === undefined ? this.memory.copy_(value) : this.#write(value)));
  }

  /** Passes written values to `write` instead of writing memory. */
  writeThrough(write: (value: Tensor) => void): void {
    this.#write = write;
  }
}

function writtenConstant({ dtype, persistent }: ModuleBuffer): TroupeError {
  return new TroupeError("MODULE_STATE", {
    where: "ModuleBuffer.write",
    expected: "a float32 buffer that is persistent",
    got: `${persistent ? "one" : "one that is not, and"} of ${dtype}`,
    hint: "other buffers are constants: written values are averaged over the ranks, and saved",
  });
}
