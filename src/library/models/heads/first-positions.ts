import { firstPositions, Identity, Module, type PackedRow } from "../../../compute/nn/index.ts";
import { Tensor } from "../../../compute/tensor/index.ts";

/**
 * Which positions of a stack's answer are read: all, or of each sample the first alone. A last layer whose first position alone is
 * read makes keys and values of all positions, and everything else of that one: the same numbers and gradients for less work.
 */
export type Reads = "all" | "first";

/** What is read of each of so many layers: of all but the last one everything, by the next. */
export function readOfEach(numLayers: number, ofLast: Reads): Reads[] {
  return Array.from({ length: numLayers }, (_, index) => (index === numLayers - 1 ? ofLast : "all"));
}

/** From here on a stream has the first position of each sample alone. */
export class FirstPositions extends Module {
  /** All positions, where tensor-parallel ranks share them. */
  readonly all: Identity;

  constructor() {
    super();
    this.all = new Identity();
  }

  /**
   * @param x - [B, T, D]
   * @param seen - by attention: who shares the row, or whatever mask
   * @returns [B, 1, D]; of n samples that share a row [1, n, D]
   */
  override forward(x: Tensor, seen?: Tensor | PackedRow): Tensor {
    const all = this.all.forward(x);
    return isPacked(seen) ? firstPositions(all, seen).unsqueeze(0) : all.narrow(1, 0, 1);
  }
}

/** [B, T, D] → [B, D]; of n samples that share a row [n, D]. */
export function firstOf(hidden: Tensor, packed?: PackedRow): Tensor {
  return packed === undefined ? hidden.select(1, 0) : firstPositions(hidden, packed);
}

function isPacked(seen: Tensor | PackedRow | undefined): seen is PackedRow {
  return seen !== undefined && !(seen instanceof Tensor);
}
