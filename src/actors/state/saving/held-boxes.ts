import { hold, numelOf, type Tensor } from "../../../compute/tensor/index.ts";
import { type Box, boxesOfRun } from "../../../library/checkpoint/index.ts";
import type { HeldRun } from "../../protocols/index.ts";

/** A box of a complete tensor, and the position of its elements in a rank's share. */
export interface HeldBox extends Box {
  /** The run of the rank's share that contains them, maybe with others: elements of a box of this shape. */
  readonly from: { readonly begin: number; readonly shape: readonly number[] };
  /** Its part of that box: all along every dimension but one. */
  readonly cut: { readonly dim: number; readonly begin: number; readonly size: number };
}

/**
 * The boxes of a run of held elements in the complete tensor: a split tensor's share consists of as many parts there as the
 * tensor was cut into, and its padding is nowhere.
 */
export function heldBoxes(held: HeldRun): HeldBox[] {
  return boxesOfRun(held.shape, held.begin, held.numel).flatMap((box) => {
    const begin = held.shape.reduce((place, size, dim) => place * size + (box.offset[dim] ?? 0), 0);
    const from = { begin, shape: box.shape };
    const { split } = held;
    if (split === undefined) return [{ ...box, from, cut: { dim: 0, begin: 0, size: box.shape[0] ?? 1 } }];
    const { dim, index, parts, logicalShape } = split;
    const heldWidth = (held.shape[dim] ?? 0) / parts;
    const wholeWidth = (logicalShape[dim] ?? 0) / parts;
    const first = Math.min(index * heldWidth, wholeWidth);
    const width = Math.min(heldWidth, wholeWidth - first);
    const [low = 0, size = 0] = [box.offset[dim], box.shape[dim]];
    return Array.from({ length: parts }, (_, part) => {
      const begin = Math.max(low, part * heldWidth);
      const end = Math.min(low + size, part * heldWidth + width);
      return {
        offset: box.offset.with(dim, part * wholeWidth + first + begin - part * heldWidth),
        shape: box.shape.with(dim, end - begin),
        from,
        cut: { dim, begin: begin - low, size: end - begin },
      };
    }).filter(({ cut }) => cut.size > 0);
  });
}

/** @param values - the run of the box, flat @returns the box's own elements, flat; the caller's */
export function valuesOf({ from, cut }: HeldBox, values: Tensor): Tensor {
  if (cut.size === (from.shape[cut.dim] ?? 1)) return hold(() => values.view([-1]));
  return hold(() => values.view(from.shape).narrow(cut.dim, cut.begin, cut.size).contiguous().view([-1]));
}

/** The run that a box is cut from. */
export function fromRun({ from }: HeldBox, held: HeldRun): HeldRun {
  return { ...held, begin: from.begin, numel: numelOf(from.shape) };
}
