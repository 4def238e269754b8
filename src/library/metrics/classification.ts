/** The classes that F1 is computed for. */
export type F1Average =
  /** One class only. Default: the second of two. */
  | { readonly kind: "class"; readonly class: number }
  /** The mean over all classes that are guessed or true. */
  | { readonly kind: "macro" };

/** The share of right guesses; 0 without any. */
export function accuracy(guesses: readonly number[], labels: readonly number[]): number {
  const right = labels.filter((label, index) => guesses[index] === label).length;
  return labels.length === 0 ? 0 : right / labels.length;
}

/** The share of rows whose label is among their `k` highest scores; of equal scores the lower class comes first. */
export function topAccuracy(
  scores: readonly ArrayLike<number>[],
  labels: readonly number[],
  k: number,
): number {
  const right = labels.filter((label, index) => rankOf(scores[index] ?? [], label) < k).length;
  return labels.length === 0 ? 0 : right / labels.length;
}

function rankOf(scores: ArrayLike<number>, place: number): number {
  const own = scores[place] ?? Number.NEGATIVE_INFINITY;
  let rank = 0;
  for (let other = 0; other < scores.length; other++) {
    const score = scores[other] ?? 0;
    if (score > own || (score === own && other < place)) rank++;
  }
  return rank;
}

/** The harmonic mean of precision and recall; 0 where both are. */
export function f1Score(
  guesses: readonly number[],
  labels: readonly number[],
  average: F1Average = { kind: "class", class: 1 },
): number {
  if (average.kind === "class") return f1Of(average.class, guesses, labels);
  const classes = [...new Set([...guesses, ...labels])];
  return mean(classes.map((each) => f1Of(each, guesses, labels)));
}

/**
 * The correlation of guesses and labels, from −1 to 1, for any number of classes; 0 where either is constant.
 * @see Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient"
 */
export function matthewsCorrelation(guesses: readonly number[], labels: readonly number[]): number {
  const classes = [...new Set([...guesses, ...labels])];
  const count = (values: readonly number[], wanted: number) =>
    values.filter((each) => each === wanted).length;
  const total = labels.length;
  const right = labels.filter((label, index) => guesses[index] === label).length;
  const guessed = classes.map((each) => count(guesses, each));
  const present = classes.map((each) => count(labels, each));
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  const spread = Math.sqrt((total ** 2 - dot(guessed, guessed)) * (total ** 2 - dot(present, present)));
  return spread === 0 ? 0 : (right * total - dot(guessed, present)) / spread;
}

function f1Of(wanted: number, guesses: readonly number[], labels: readonly number[]): number {
  let both = 0;
  let either = 0;
  for (const [index, label] of labels.entries()) {
    if (label === wanted && guesses[index] === wanted) both++;
    either += Number(label === wanted) + Number(guesses[index] === wanted);
  }
  return either === 0 ? 0 : (2 * both) / either;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** e^ of the mean loss: between how many tokens, all alike, the model is as unsure. */
export function perplexity(nats: number, numTokens: number): number {
  return Math.exp(nats / Math.max(1, numTokens));
}

/**
 * The share of rows whose own column is among the `k` that are nearest to them.
 * @param rows - N vectors, as `columns`, each the pair of the one at its place
 */
export function recallAt(
  k: number,
  rows: readonly ArrayLike<number>[],
  columns: readonly ArrayLike<number>[],
): number {
  const found = rows.filter(
    (row, place) =>
      rankOf(
        columns.map((column) => dot(row, column)),
        place,
      ) < k,
  );
  return found.length / Math.max(1, rows.length);
}

function dot(left: ArrayLike<number>, right: ArrayLike<number>): number {
  let sum = 0;
  for (let index = 0; index < left.length; index++) sum += (left[index] ?? 0) * (right[index] ?? 0);
  return sum;
}
