import { ops, type Tensor, tensor } from "../../tensor/index.ts";
import type { Module } from "../module/module.ts";

// n virtual positions, L layers, G key/value heads, K head width, B rows, S positions.

/** Keys and values of virtual positions, of each layer keys, then values. */
export interface PrefixTable extends Module {
  /** @returns what one layer has, [n, 2 · G · K]; `width` is 2 · G · K */
  part(layerIndex: number, width: number): Tensor;
}

/** What one attention finds in front of the keys and values that it makes itself: its part of a table that all layers share. */
export class PrefixHeads {
  readonly table: PrefixTable;
  readonly layerIndex: number;
  readonly numHeads: number;
  readonly headWidth: number;
  /** The heads that are here, where ranks split them; what is none, the number of heads, is zero. Default: all. */
  heads: readonly number[] | undefined;

  constructor(table: PrefixTable, layerIndex: number, numHeads: number, headWidth: number) {
    this.table = table;
    this.layerIndex = layerIndex;
    this.numHeads = numHeads;
    this.headWidth = headWidth;
  }

  /** @param keys - [B, G, S, K], as values @returns [B, G, n + S, K] each */
  inFront(keys: Tensor, values: Tensor): [keys: Tensor, values: Tensor] {
    const [numRows = 0] = keys.shape;
    const { table, layerIndex, numHeads, headWidth } = this;
    const both = table.part(layerIndex, 2 * numHeads * headWidth).to(keys.dtype);
    const parts = both.view([-1, 2, numHeads, headWidth]);
    const joined = [keys, values].map((own, index) => {
      const heads = this.#here(parts.select(1, index)); // [n, G, K]
      const prefix = heads.transpose(0, 1).unsqueeze(0); // [1, G, n, K]
      return ops.cat([prefix.expand([numRows, ...prefix.shape.slice(1)]), own], 2);
    });
    return joined as [Tensor, Tensor];
  }

  #here(all: Tensor): Tensor {
    const { heads, numHeads } = this;
    if (heads === undefined) return all;
    const known = heads.includes(numHeads) ? ops.constantPadNd(all, [0, 0, 0, 1]) : all;
    return known.indexSelect(1, tensor([...heads], { dtype: "int64" }));
  }
}

const prefixes = new WeakMap<object, PrefixHeads>();
let numPrefixed = 0;

/** Lets an attention, which asks by `withPast`, find something in front. */
export function setPrefix(owner: object, prefix: PrefixHeads): void {
  prefixes.set(owner, prefix);
}

/** What an attention finds in front. */
export function prefixOf(owner: object): PrefixHeads | undefined {
  return prefixes.get(owner);
}

/** Runs a model's forward whose positions are counted from `numPositions` on. */
export function behindPrefix<T>(numPositions: number, body: () => T): T {
  const outer = numPrefixed;
  numPrefixed = numPositions;
  try {
    return body();
  } finally {
    numPrefixed = outer;
  }
}

/** Positions that a prefix takes in the forward that runs now. */
export function prefixLength(): number {
  return numPrefixed;
}
