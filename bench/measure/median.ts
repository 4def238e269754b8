/** The value below which `share` of the others lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** The middle one; of two in the middle the upper. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
