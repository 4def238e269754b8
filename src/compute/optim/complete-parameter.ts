import { hold, numelOf, ops, scope, type Tensor, tensor } from "../tensor/index.ts";
import type { OwnedStretch, UpdateShare } from "./update-rule.ts";

/** An exchange of a rank with all ranks in the middle of an update. */
export type Exchange<Result> = Generator<Tensor, Result, readonly Tensor[]>;

/** Yields this rank's values. @returns every rank's, in rank order */
function* exchanged(values: Float64Array): Exchange<Float64Array[]> {
  const all = yield hold(() => tensor(values));
  return all.map((share) => share.toTypedArray() as Float64Array);
}

/** @returns the elementwise largest of all ranks' values */
export function* largestOf(values: Float64Array): Exchange<Float64Array> {
  const all = yield* exchanged(values);
  return values.map((_, index) => Math.max(...all.map((share) => share[index] as number)));
}

/** @returns the elementwise sum of all ranks' values; of exact parts, the same bits in every order */
export function* summed(values: Float64Array): Exchange<Float64Array> {
  const all = yield* exchanged(values);
  const total = new Float64Array(values.length);
  for (const share of all) for (let index = 0; index < total.length; index++) total[index]! += share[index]!;
  return total;
}

/** @returns for every parameter of the share, the largest magnitude in its owned part; 0 if nothing is owned */
export function maximaOf(share: UpdateShare, tensorOf: (stretch: OwnedStretch) => Tensor): Float64Array {
  const maxima = new Float64Array(share.parameters.length);
  eachPiece(share, (stretch, ends, places) => {
    const found = numbersOf(ops.troupe.segmentMaxima(tensorOf(stretch), ends));
    places.forEach((place, index) => {
      maxima[place] = found[2 * index + 1] as number;
    });
  });
  return maxima;
}

/** @returns for every parameter of the share, the largest magnitude of its values, then of their gradients, on all ranks */
export function bothMaxima(share: UpdateShare): Exchange<Float64Array> {
  const ofMasters = maximaOf(share, ({ master }) => master);
  return largestOf(Float64Array.of(...ofMasters, ...maximaOf(share, ({ gradient }) => gradient)));
}

/**
 * Sums of squares of the owned part of every parameter of the share, in two parts each: those of all ranks add up to the same
 * bits however they are sliced.
 * @param maxima - the largest magnitude of each complete parameter
 */
export function squareSumsOf(
  share: UpdateShare,
  tensorOf: (stretch: OwnedStretch) => Tensor,
  maxima: ArrayLike<number>,
): Float64Array {
  const sums = new Float64Array(2 * share.parameters.length);
  const bounds = share.parameters.map(
    ({ shape, split }, index) => numelOf(split?.logicalShape ?? shape) * (maxima[index] as number) ** 2,
  );
  eachPiece(share, (stretch, ends, places) => {
    const ofSegments = places.flatMap((place) => [0, bounds[place] as number]);
    const found = numbersOf(ops.troupe.exactSquareSums(tensorOf(stretch), ends, ofSegments));
    places.forEach((place, index) => {
      sums.set(found.subarray(4 * index + 2, 4 * index + 4), 2 * place);
    });
  });
  return sums;
}

/** @returns the complete parameters' sums of squares, from the added results of {@link squareSumsOf} on all ranks */
export function joined(parts: Float64Array): number[] {
  return Array.from({ length: parts.length / 2 }, (_, index) => parts[2 * index]! + parts[2 * index + 1]!);
}

/** @returns each parameter's place in the share */
export function placesOf({ parameters }: UpdateShare): ReadonlyMap<string, number> {
  return new Map(parameters.map(({ name }, index) => [name, index]));
}

/** Calls `visit` for each stretch, with ends that alternate between the gap before a piece and the piece itself. */
function eachPiece(
  share: UpdateShare,
  visit: (stretch: OwnedStretch, ends: number[], places: number[]) => void,
): void {
  const places = placesOf(share);
  for (const stretch of share.stretches) {
    const ends = stretch.pieces.flatMap(({ rangeBegin, numel }) => [rangeBegin, rangeBegin + numel]);
    const ofPieces = stretch.pieces.map(({ parameter }) => places.get(parameter.name) as number);
    scope(() => visit(stretch, ends, ofPieces));
  }
}

const numbersOf = (values: Tensor): Float64Array => values.toTypedArray() as Float64Array;
