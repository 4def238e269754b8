/** Pearson's correlation of two lists, from −1 to 1; 0 where either is constant. */
export function pearson(left: readonly number[], right: readonly number[]): number {
  // Rounding gives a constant's mean, and so the constant, some spread.
  if (isConstant(left) || isConstant(right)) return 0;
  const [a, b] = [centred(left), centred(right)];
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, index) => sum + value * (y[index] ?? 0), 0);
  const spread = Math.sqrt(dot(a, a) * dot(b, b));
  return spread === 0 ? 0 : dot(a, b) / spread;
}

/** Spearman's correlation: {@link pearson} of the ranks; equal values share the mean of theirs. */
export function spearman(left: readonly number[], right: readonly number[]): number {
  return pearson(ranks(left), ranks(right));
}

function isConstant(values: readonly number[]): boolean {
  return values.every((value) => value === values[0]);
}

function centred(values: readonly number[]): number[] {
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  return values.map((value) => value - mean);
}

function ranks(values: readonly number[]): number[] {
  const places = new Map<number, { sum: number; count: number }>();
  for (const [place, value] of values.toSorted((a, b) => a - b).entries()) {
    const { sum, count } = places.get(value) ?? { sum: 0, count: 0 };
    places.set(value, { sum: sum + place, count: count + 1 });
  }
  return values.map((value) => {
    const { sum, count } = places.get(value) as { sum: number; count: number };
    return sum / count;
  });
}
