import { numelOf, ops, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { type Draw, Drawing } from "./drawing.ts";

/** Says that the masked tensor is one of `count` equal pieces of a larger tensor along `dim`. */
export interface MaskSplit {
  /** Counted from the end if negative. */
  readonly dim: number;
  readonly index: number;
  readonly count: number;
  /** Number of positions at the end of the last piece that are beyond the tensor, along `dim`. Default: 0. */
  readonly padding?: number;
}

/**
 * While training, zeroes each element with probability p and scales the others by 1/(1 − p). The mask is a pure function of
 * the bound `Randomness`, the module's name and the number of its earlier calls in this forward; it is drawn again in
 * backward, never stored. If {@link split} is set, a rank draws its piece of the full tensor's mask.
 */
export class Dropout extends Drawing {
  readonly p: number;
  /** Set from outside when the masked tensor is split over ranks. */
  split: MaskSplit | undefined = undefined;

  /** @throws `MODULE_ARGUMENT` unless 0 ≤ p < 1 */
  constructor(p: number) {
    super();
    if (!(p >= 0 && p < 1)) throw argumentError("Dropout", "a probability in [0, 1)", p, { p });
    this.p = p;
  }

  /** Whether forward changes anything now. */
  get active(): boolean {
    return this.training && this.p > 0;
  }

  /** @throws `RANDOMNESS_UNBOUND` while training with p > 0 if no randomness is bound */
  override forward(x: Tensor): Tensor {
    if (!this.active) return x;
    const { p, seed, stream, offset, run, stride } = this.next(x.shape);
    return ops.troupe.dropout(x, p, seed, stream, offset, run, stride);
  }

  /**
   * Returns the mask that the next call of forward would draw for this shape, for a kernel that applies it itself.
   * @throws `RANDOMNESS_UNBOUND` if no randomness is bound
   */
  next(shape: readonly number[]): DropoutMask {
    return { p: this.p, ...this.draw(), ...placesOf(shape, this.split) };
  }
}

/** A mask as kernels take it: element i of a piece uses word offset + ⌊i / run⌋ · stride + i mod run of (seed, stream). */
export interface DropoutMask extends Draw {
  readonly p: number;
  readonly offset: number;
  readonly run: number;
  readonly stride: number;
}

/** Returns where the elements of a piece are in the full tensor, row-major: runs of `run` elements, `stride` apart. */
function placesOf(shape: readonly number[], split: MaskSplit | undefined) {
  const { dim: given = 0 } = split ?? {};
  const dim = given < 0 ? shape.length + given : given;
  const run = Math.max(1, numelOf(shape.slice(dim)));
  if (split === undefined) return { offset: 0, run, stride: run };
  const beyond = (split.padding ?? 0) * numelOf(shape.slice(dim + 1));
  return { offset: split.index * run, run, stride: split.count * run - beyond };
}
