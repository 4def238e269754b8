import { anglesAt, type PackedRow, type RotaryAngles } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import type { PlacedIds } from "./token-ids.ts";

/** What every layer of a decoder with rotary positions is given beside the residual stream. */
export interface RotaryContext {
  readonly angles: RotaryAngles;
  /** bool [B, 1, 1, T], true where a position is no padding; or the texts that share the row. Undefined where nothing is hidden. */
  readonly mask: Tensor | PackedRow | undefined;
}

/** @param angles - of every position up to the longest; where texts share a row, each takes those of its own positions */
export function rotaryContext(angles: RotaryAngles, { positions, mask }: PlacedIds): RotaryContext {
  return { angles: positions ? anglesAt(angles, positions.select(0, 0)) : angles, mask };
}
