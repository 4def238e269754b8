import { anglesAt, type PackedRow, type RotaryAngles } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import type { PlacedIds } from "./token-ids.ts";

/** Rotary angles and mask, passed to every layer of a decoder. */
export interface RotaryContext {
  readonly angles: RotaryAngles;
  /** bool [B, 1, 1, T], false at padding; or the packed texts. Undefined if nothing is masked. */
  readonly mask: Tensor | PackedRow | undefined;
}

/** @param angles - of every position up to the longest; packed texts take those of their own positions */
export function rotaryContext(angles: RotaryAngles, { positions, mask }: PlacedIds): RotaryContext {
  return { angles: positions ? anglesAt(angles, positions.select(0, 0)) : angles, mask };
}
