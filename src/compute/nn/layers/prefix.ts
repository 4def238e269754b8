import { ops, type Tensor, tensor } from "../../tensor/index.ts";
import type { Module } from "../module/module.ts";

// n virtual positions, L layers, G key/value heads, K head width, B rows, S positions.

/** Keys and values of virtual positions (prefix tuning), for each layer keys first, then values. */
export interface PrefixTable extends Module {
  /** Returns the part of one layer, [n, 2 · G · K]; `width` is 2 · G · K. */
  part(layerIndex: number, width: number): Tensor;
}

/** The prefix of one attention, which precedes its own keys and values: its part of a table that all layers share. */
export class PrefixHeads {
  readonly table: PrefixTable;
  readonly layerIndex: number;
  readonly numHeads: number;
  readonly headWidth: number;
  /**
   * The heads of this rank if ranks split them; an index equal to the number of heads stands for padding, which is zero.
   * Default: all.
   */
  heads: readonly number[] | undefined;

  constructor(table: PrefixTable, layerIndex: number, numHeads: number, headWidth: number) {
    this.table = table;
    this.layerIndex = layerIndex;
    this.numHeads = numHeads;
    this.headWidth = headWidth;
  }

  /** Puts the prefix before keys and values. @param keys - [B, G, S, K], as values @returns [B, G, n + S, K] each */
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

/** Gives an attention a prefix, which `withPast` puts before its keys and values. */
export function setPrefix(owner: object, prefix: PrefixHeads): void {
  prefixes.set(owner, prefix);
}

/** Returns the prefix of an attention. */
export function prefixOf(owner: object): PrefixHeads | undefined {
  return prefixes.get(owner);
}

/** Whether an attention of a model has a prefix. */
export function isPrefixed(model: Module): boolean {
  return [...model.namedModules().values()].some((module) => prefixes.has(module));
}

/** Runs a model's forward with positions counted from `numPositions`. */
export function behindPrefix<T>(numPositions: number, body: () => T): T {
  const outer = numPrefixed;
  numPrefixed = numPositions;
  try {
    return body();
  } finally {
    numPrefixed = outer;
  }
}

/** Returns the number of positions that a prefix takes in the running forward. */
export function prefixLength(): number {
  return numPrefixed;
}
