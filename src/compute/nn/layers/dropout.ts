import { TroupeError } from "../../../errors/index.ts";
import { numelOf, ops, type Tensor } from "../../tensor/index.ts";
import { type Draw, Drawing } from "./drawing.ts";

/** That what is masked is one of `count` equal pieces, along `dim`, of a larger tensor. */
export interface MaskSplit {
  /** Counted from the end where it is negative. */
  readonly dim: number;
  readonly index: number;
  readonly count: number;
  /** How many places at the end of the last piece lie beyond the tensor, along `dim`. Default: none. */
  readonly padding?: number;
}

/**
 * While training, zeroes each element with probability p and scales the others by 1/(1 − p). The mask is a pure
 * function of the bound `Randomness`, the module's name and how often it was called before in this forward, and is
 * drawn again in backward, never stored. Where {@link split} says that a rank masks a piece of a tensor, it draws that
 * piece of the whole tensor's mask.
 */
export class Dropout extends Drawing {
  readonly p: number;
  /** Set from outside, by whoever splits what is masked over ranks. */
  split: MaskSplit | undefined = undefined;

  /** @throws `MODULE_ARGUMENT` unless 0 ≤ p < 1 */
  constructor(p: number) {
    super();
    if (!(p >= 0 && p < 1)) {
      throw new TroupeError(
        "MODULE_ARGUMENT",
        { where: "Dropout", expected: "a probability in [0, 1)", got: `${p}` },
        {
          fields: { p },
        },
      );
    }
    this.p = p;
  }

  /** Whether forward changes anything now. */
  get active(): boolean {
    return this.training && this.p > 0;
  }

  /** @throws `RANDOMNESS_UNBOUND` while training with p > 0 where nothing is bound */
  override forward(x: Tensor): Tensor {
    if (!this.active) return x;
    const { p, seed, stream, offset, run, stride } = this.next(x.shape);
    return ops.troupe.dropout(x, p, seed, stream, offset, run, stride);
  }

  /**
   * The mask that the next call of forward would draw for a tensor of this shape, for a kernel that applies it itself.
   * @throws `RANDOMNESS_UNBOUND` where nothing is bound
   */
  next(shape: readonly number[]): DropoutMask {
    return { p: this.p, ...this.draw(), ...placesOf(shape, this.split) };
  }
}

/** A mask as kernels take it: element i of a piece takes word offset + ⌊i / run⌋ · stride + i mod run of (seed, stream). */
export interface DropoutMask extends Draw {
  readonly p: number;
  readonly offset: number;
  readonly run: number;
  readonly stride: number;
}

/** Where the elements of a piece stand in the whole tensor, row-major: runs of `run` elements, `stride` apart. */
function placesOf(shape: readonly number[], split: MaskSplit | undefined) {
  const { dim: given = 0 } = split ?? {};
  const dim = given < 0 ? shape.length + given : given;
  const run = Math.max(1, numelOf(shape.slice(dim)));
  if (split === undefined) return { offset: 0, run, stride: run };
  const beyond = (split.padding ?? 0) * numelOf(shape.slice(dim + 1));
  return { offset: split.index * run, run, stride: split.count * run - beyond };
}
