import { ops, scope } from "../tensor/index.ts";
import { matricesOf } from "./adafactor-state.ts";
import { joined, placesOf } from "./complete-parameter.ts";
import type { UpdateShare } from "./update-rule.ts";

/** Sums of squared gradients over rows and columns of every matrix of a block, in exact parts. */
export class FactoredSums {
  /** For each matrix parameter its rows, then its columns. */
  readonly parts: readonly Float64Array[];
  readonly #first = new Map<string, number>();

  /**
   * @param maxima - the largest magnitude of each complete parameter's gradient, before `scale`
   * @param scale - multiplies the gradient
   */
  constructor(share: UpdateShare, maxima: ArrayLike<number>, scale: number) {
    const parts: Float64Array[] = [];
    const places = placesOf(share);
    for (const { name, shape } of share.parameters) {
      const matrices = matricesOf(shape);
      if (matrices === undefined) continue;
      this.#first.set(name, parts.length);
      parts.push(new Float64Array(2 * matrices.count * matrices.rows));
      parts.push(new Float64Array(2 * matrices.count * matrices.columns));
    }
    for (const { gradient, pieces } of share.stretches) {
      for (const { parameter, parameterBegin, rangeBegin, numel } of pieces) {
        const first = this.#first.get(parameter.name);
        const matrices = matricesOf(parameter.shape);
        if (first === undefined || matrices === undefined) continue;
        // A little more than the product, which is rounded to float32.
        const largest = maxima[places.get(parameter.name) as number]! * Math.abs(scale) * 1.001;
        scope(() => {
          const [rows, columns] = ops.troupe.factoredSquareSums(
            gradient.narrow(0, rangeBegin, numel),
            [matrices.count, matrices.rows, matrices.columns],
            parameterBegin,
            scale,
            parameter.numel * largest ** 2,
          );
          parts[first] = rows.toTypedArray() as Float64Array;
          parts[first + 1] = columns.toTypedArray() as Float64Array;
        });
      }
    }
    this.parts = parts;
  }

  /** @returns the complete sums of one parameter's rows and columns, from the exchanged parts */
  of(name: string, exchanged: readonly Float64Array[]): readonly [rows: number[], columns: number[]] {
    const first = this.#first.get(name) as number;
    const columns = exchanged[first + 1] as Float64Array;
    const half = columns.length / 2;
    return [
      joined(exchanged[first] as Float64Array),
      Array.from({ length: half }, (_, index) => columns[index]! + columns[half + index]!),
    ];
  }
}
