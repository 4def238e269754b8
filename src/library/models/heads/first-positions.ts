import { firstPositions, Identity, Module, type PackedRow } from "../../../compute/nn/index.ts";
import { Tensor } from "../../../compute/tensor/index.ts";

/**
 * Positions of a stack's output that are read: all, or only the first of each sample. The last layer then computes keys and values of
 * all positions, and everything else for the first: the same numbers and gradients for less work.
 */
export type Reads = "all" | "first";

/** Positions read of each layer: of the last as given, of all others all, by the next layer. */
export function readOfEach(numLayers: number, ofLast: Reads): Reads[] {
  return Array.from({ length: numLayers }, (_, index) => (index === numLayers - 1 ? ofLast : "all"));
}

/** Reduces a stream to the first position of each sample. */
export class FirstPositions extends Module {
  /** All positions; marks where tensor-parallel ranks gather them. */
  readonly all: Identity;

  constructor() {
    super();
    this.all = new Identity();
  }

  /**
   * @param x - [B, T, D]
   * @param seen - attention's mask, or the packed samples
   * @returns [B, 1, D]; for n packed samples [1, n, D]
   */
  override forward(x: Tensor, seen?: Tensor | PackedRow): Tensor {
    const all = this.all.forward(x);
    return isPacked(seen) ? firstPositions(all, seen).unsqueeze(0) : all.narrow(1, 0, 1);
  }
}

/** [B, T, D] → [B, D]; for n packed samples [n, D]. */
export function firstOf(hidden: Tensor, packed?: PackedRow): Tensor {
  return packed === undefined ? hidden.select(1, 0) : firstPositions(hidden, packed);
}

function isPacked(seen: Tensor | PackedRow | undefined): seen is PackedRow {
  return seen !== undefined && !(seen instanceof Tensor);
}
