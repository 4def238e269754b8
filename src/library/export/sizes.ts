/** A size that the traces of a forward share: a number, or an expression of symbols. */
export type Size = number | Expression;

/** (Σ factor · Π symbols + offset) / divisor, without a remainder. */
export interface Expression {
  readonly terms: readonly { readonly factor: number; readonly symbols: readonly SizeSymbol[] }[];
  readonly offset: number;
  readonly divisor: number;
}

/** A size that differs between traces, such as the length of a text. */
export interface SizeSymbol {
  readonly name: string;
  /** Its value in each trace. */
  readonly values: readonly number[];
}

/** Whether two sizes are the same expression. */
export function isSameSize(one: Size, other: Size): boolean {
  return textOfSize(one) === textOfSize(other);
}

/** Writes a size as a formula, which is also its name in a graph's shapes. */
export function textOfSize(size: Size): string {
  if (typeof size === "number") return `${size}`;
  const { terms, offset, divisor } = size;
  const products = terms.map(({ factor, symbols }) =>
    [...(factor === 1 ? [] : [factor]), ...symbols.map(({ name }) => name)].join("*"),
  );
  const sum = [...products, ...(offset === 0 ? [] : [offset])].join(" + ");
  return divisor === 1 ? sum : `(${sum})/${divisor}`;
}

/** The expression of one symbol. */
export function sizeOf(symbol: SizeSymbol): Expression {
  return { terms: [{ factor: 1, symbols: [symbol] }], offset: 0, divisor: 1 };
}

/**
 * Finds the expression with given values in the traces: a constant, a symbol, a symbol or a product of symbols times a factor
 * plus a constant, or a sum of two symbols with factors and a constant.
 * @returns undefined if there is none
 */
export function fitSize(values: readonly number[], symbols: readonly SizeSymbol[]): Size | undefined {
  const [first = 0] = values;
  if (values.every((value) => Object.is(value, first))) return first;
  if (!values.every(Number.isSafeInteger)) return undefined;
  const same = symbols.find((symbol) => symbol.values.every((value, trace) => value === values[trace]));
  if (same !== undefined) return sizeOf(same);
  const pairs = symbols.flatMap((one, index) => symbols.slice(index).map((other) => [one, other]));
  const triples = pairs.flatMap(([one, other]) => symbols.map((third) => [one, other, third]));
  for (const factors of [...symbols.map((symbol) => [symbol]), ...pairs, ...triples] as SizeSymbol[][]) {
    const products = values.map((_, trace) => factors.reduce((all, factor) => all * at(factor, trace), 1));
    const line = lineThrough(products, values);
    if (line !== undefined) {
      const { factor, offset, divisor } = line;
      return { terms: [{ factor, symbols: factors }], offset, divisor };
    }
  }
  for (const [one, other] of pairs as [SizeSymbol, SizeSymbol][]) {
    for (const factor of [1, -1, 2, -2]) {
      const rest = values.map((value, trace) => value - factor * at(other, trace));
      const line = lineThrough(one.values, rest);
      if (line === undefined || line.divisor !== 1) continue;
      const terms = [
        { factor: line.factor, symbols: [one] },
        { factor, symbols: [other] },
      ];
      return { terms, offset: line.offset, divisor: 1 };
    }
  }
  return undefined;
}

function at({ values }: SizeSymbol, trace: number): number {
  return values[trace] ?? 0;
}

/** y = (factor · x + offset) / divisor through all points, in whole numbers; undefined if there is none with factor ≠ 0. */
function lineThrough(
  xs: readonly number[],
  ys: readonly number[],
): { readonly factor: number; readonly offset: number; readonly divisor: number } | undefined {
  const [x0 = 0, y0 = 0] = [xs[0], ys[0]];
  const other = xs.findIndex((x) => x !== x0);
  if (other < 0) return undefined;
  const [rise, run] = [(ys[other] ?? 0) - y0, (xs[other] ?? 0) - x0];
  if (rise === 0) return undefined;
  const common = greatestCommonDivisor(Math.abs(rise), Math.abs(run)) * Math.sign(run);
  const [factor, divisor] = [rise / common, run / common];
  const offset = divisor * y0 - factor * x0;
  const fits = xs.every((x, index) => factor * x + offset === divisor * (ys[index] ?? 0));
  return fits ? { factor, offset, divisor } : undefined;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
