import { TroupeError } from "../../../errors/index.ts";
import type { Awaitable, Fingerprint } from "../dataset.ts";
import { permute } from "../permutation.ts";
import type { SampleOrder } from "../sample-dataset.ts";
import type { Records } from "./open-records.ts";

/** Positions in which each source has exactly its share, rounded. */
const CYCLE = 1_000;

/** A source of a mixture. */
export interface WeighedRecords<T> {
  readonly records: Records<T>;
  /** Its share of the samples, relative to those of the other sources; at least a thousandth of all. */
  readonly weight: number;
}

/**
 * Mixes sources by weights: each thousand samples have each source's share of it, in shuffled places. Each source has epochs of its
 * own, in each of which all of its records occur once; an epoch of the mixture has as many samples as all sources together.
 * @throws {TroupeError} `DATA_OPTION` for no sources, or a weight that is not positive or too small
 */
export function mixRecords<T>(sources: readonly WeighedRecords<T>[]): Records<T> {
  return new Mixture(sources);
}

class Mixture<T> implements Records<T> {
  readonly length: number;
  readonly #sources: readonly Records<T>[];
  /** The first index of each source. */
  readonly #begins: readonly number[];
  /** Places of a cycle of each source, and the first of them. */
  readonly #shares: readonly number[];
  readonly #firsts: readonly number[];

  constructor(sources: readonly WeighedRecords<T>[]) {
    this.#sources = sources.map(({ records }) => records);
    this.#shares = sharesOf(sources.map(({ weight }) => weight));
    this.#firsts = sumsBefore(this.#shares);
    this.#begins = sumsBefore(this.#sources.map(({ length }) => length));
    this.length = this.#sources.reduce((sum, { length }) => sum + length, 0);
  }

  get numBad(): number {
    return this.#sources.reduce((sum, { numBad }) => sum + numBad, 0);
  }

  at(index: number): Awaitable<T> {
    const source = this.#begins.findLastIndex((begin) => begin <= index);
    return (this.#sources[source] as Records<T>).at(index - (this.#begins[source] as number));
  }

  indexAt(position: number, order: SampleOrder): number {
    const cycle = Math.floor(position / CYCLE);
    const place = permute(position % CYCLE, CYCLE, order.seed, cycle);
    const source = this.#firsts.findLastIndex((first) => first <= place);
    const own = cycle * (this.#shares[source] as number) + place - (this.#firsts[source] as number);
    return (this.#begins[source] as number) + (this.#sources[source] as Records<T>).indexAt(own, order);
  }

  fingerprint(): Fingerprint {
    const parts = this.#sources.flatMap((records, source) => [
      ...Object.entries(records.fingerprint()).map(([name, value]) => [`${name} ${source}`, value] as const),
      [`share ${source}`, this.#shares[source] as number] as const,
    ]);
    return Object.fromEntries(parts);
  }
}

/** Shares of a cycle, rounded so that they fill it: the largest remainders are rounded up. */
function sharesOf(weights: readonly number[]): readonly number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const exact = weights.map((weight) => (CYCLE * weight) / total);
  const shares = exact.map(Math.floor);
  const rest = CYCLE - shares.reduce((sum, share) => sum + share, 0);
  const remainders = exact.map((share, source) => [share % 1, source] as const);
  for (const [, source] of remainders.toSorted(([one], [other]) => other - one).slice(0, rest))
    shares[source] = (shares[source] as number) + 1;
  if (weights.length > 0 && weights.every((weight) => weight > 0) && shares.every((share) => share > 0))
    return shares;
  throw new TroupeError("DATA_OPTION", {
    where: "mixRecords",
    expected: `sources with positive weights, each at least 1/${CYCLE} of their sum`,
    got: weights.join(", ") || "none",
    fields: { weights },
  });
}

function sumsBefore(numbers: readonly number[]): number[] {
  let sum = 0;
  return numbers.map((number) => {
    sum += number;
    return sum - number;
  });
}
