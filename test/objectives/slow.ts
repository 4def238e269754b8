/** Objectives in plain TypeScript and float64, one number at a time: as slow, and as close to the papers, as they can be. */

export type Row = readonly number[];
export type Table = readonly Row[];
export type Cube = readonly Table[];

const at = (row: Row, index: number) => row[index] as number;
const cell = (table: Table, n: number, t: number) => at(table[n] as Row, t);
export const sumOf = (row: Row) => row.reduce((sum, value) => sum + value, 0);
export const meanOf = (row: Row) => sumOf(row) / row.length;
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

export function softmax(logits: Row, temperature = 1): number[] {
  const powers = logits.map((logit) => Math.exp(logit / temperature));
  return powers.map((power) => power / sumOf(powers));
}

export const tokenLogProbs = (logits: Cube, tokens: Table, temperature = 1): number[][] =>
  tokens.map((row, n) =>
    row.map((token, t) =>
      token < 0 ? 0 : Math.log(at(softmax((logits[n] as Table)[t] as Row, temperature), token)),
    ),
  );

/** The number that a weighted sum of all tokens is, where `each` gives a token's value. */
function overTokens(
  mask: Table,
  mean: "sequence" | "token" | number,
  each: (n: number, t: number) => number,
) {
  const total = sumOf(mask.map(sumOf));
  let sum = 0;
  for (const [n, row] of mask.entries())
    for (const [t, counts] of row.entries()) {
      if (counts === 0) continue;
      const divisor =
        mean === "token" ? total : mask.length * (mean === "sequence" ? Math.max(1, sumOf(row)) : mean);
      sum += each(n, t) / divisor;
    }
  return sum;
}

export const weighedMean = (values: Table, mask: Table, mean: "sequence" | "token" | number) =>
  overTokens(mask, mean, (n, t) => cell(values, n, t));

export function kl(estimator: "k1" | "k2" | "k3", policy: number, reference: number): number {
  const ratio = Math.exp(reference - policy);
  if (estimator === "k1") return -Math.log(ratio);
  return estimator === "k2" ? Math.log(ratio) ** 2 / 2 : ratio - 1 - Math.log(ratio);
}

export const rewardModel = (chosen: Row, rejected: Row, margins: Row) =>
  meanOf(chosen.map((value, n) => -Math.log(sigmoid(value - at(rejected, n) - at(margins, n)))));

export interface Pairs {
  readonly chosen: Row;
  readonly rejected: Row;
  readonly referenceChosen: Row;
  readonly referenceRejected: Row;
}

const margin = ({ chosen, rejected, referenceChosen, referenceRejected }: Pairs, n: number) =>
  at(chosen, n) - at(referenceChosen, n) - (at(rejected, n) - at(referenceRejected, n));

export const dpo = (pairs: Pairs, beta: number, smoothing: number) =>
  meanOf(
    pairs.chosen.map((_, n) => {
      const wins = sigmoid(beta * margin(pairs, n));
      return -(1 - smoothing) * Math.log(wins) - smoothing * Math.log(1 - wins);
    }),
  );

export const ipo = (pairs: Pairs, beta: number) =>
  meanOf(pairs.chosen.map((_, n) => (margin(pairs, n) - 1 / (2 * beta)) ** 2));

export const kto = (
  logProbs: Row,
  reference: Row,
  isGood: Row,
  { beta, kl, good, bad }: Readonly<Record<"beta" | "kl" | "good" | "bad", number>>,
) =>
  meanOf(
    logProbs.map((value, n) => {
      const gain = value - at(reference, n) - Math.max(0, kl);
      return at(isGood, n) === 1 ? good * (1 - sigmoid(beta * gain)) : bad * (1 - sigmoid(-beta * gain));
    }),
  );

export const orpo = (chosen: Row, rejected: Row, lambda: number) => {
  const odds = (logProb: number) => Math.exp(logProb) / (1 - Math.exp(logProb));
  return meanOf(
    chosen.map(
      (value, n) => -value - lambda * Math.log(sigmoid(Math.log(odds(value) / odds(at(rejected, n))))),
    ),
  );
};

export function distillation(
  student: Cube,
  teacher: Cube,
  mask: Table,
  divergence: "forward" | "reverse" | number,
  temperature: number,
): number {
  const kl = (p: Row, q: Row) => sumOf(p.map((share, v) => share * Math.log(share / at(q, v))));
  return overTokens(mask, "token", (n, t) => {
    const s = softmax((student[n] as Table)[t] as Row, temperature);
    const r = softmax((teacher[n] as Table)[t] as Row, temperature);
    if (divergence === "forward") return kl(r, s);
    if (divergence === "reverse") return kl(s, r);
    const mixed = r.map((share, v) => divergence * share + (1 - divergence) * at(s, v));
    return divergence * kl(r, mixed) + (1 - divergence) * kl(s, mixed);
  });
}

export interface Clipping {
  readonly below: number;
  readonly above: number;
  readonly ratio: "token" | "mean" | "product";
  readonly dual: number;
  readonly mean: "sequence" | "token" | number;
}

export function policy(
  { logProbs, old, advantages, mask }: Readonly<Record<"logProbs" | "old" | "advantages" | "mask", Table>>,
  { below, above, ratio, dual, mean }: Clipping,
): number {
  const logRatio = (n: number, t: number) => cell(logProbs, n, t) - cell(old, n, t);
  const ratioOf = (n: number, t: number) => {
    if (ratio === "token") return Math.exp(logRatio(n, t));
    const places = (mask[n] as Row).flatMap((counts, place) => (counts === 1 ? [place] : []));
    const sum = sumOf(places.map((place) => logRatio(n, place)));
    return Math.exp(ratio === "mean" ? sum / places.length : sum);
  };
  return overTokens(mask, mean, (n, t) => {
    const advantage = cell(advantages, n, t);
    const free = ratioOf(n, t);
    const clipped = Math.min(Math.max(free, 1 - below), 1 + above);
    const gain = Math.min(free * advantage, clipped * advantage);
    return -(advantage < 0 ? Math.max(gain, dual * advantage) : gain);
  });
}

export const value = (values: Table, old: Table, returns: Table, mask: Table, clip: number) =>
  overTokens(mask, "token", (n, t) => {
    const [now, before, goal] = [cell(values, n, t), cell(old, n, t), cell(returns, n, t)];
    const near = before + Math.min(Math.max(now - before, -clip), clip);
    return Math.max((now - goal) ** 2, (near - goal) ** 2) / 2;
  });

export function deviation(values: Row): number {
  const mean = meanOf(values);
  return Math.sqrt(sumOf(values.map((each) => (each - mean) ** 2)) / (values.length - 1));
}

const groupOf = (rewards: Row, samples: number, n: number) =>
  rewards.slice(n - (n % samples), n - (n % samples) + samples);

export const groupAdvantages = (rewards: Row, samples: number, by: "group" | "batch" | "none") =>
  rewards.map((reward, n) => {
    const group = groupOf(rewards, samples, n);
    if (by === "none") return reward - meanOf(group);
    return (reward - meanOf(group)) / (deviation(by === "group" ? group : rewards) + 1e-4);
  });

export const leaveOneOut = (rewards: Row, samples: number) =>
  rewards.map((reward, n) => {
    const others = groupOf(rewards, samples, n).filter((_, place) => place !== n % samples);
    return reward - meanOf(others);
  });

/** Computes on the tokens of a text that the policy wrote; the others are zeros. */
function written(mask: Row, of: (places: number[]) => number[]): number[] {
  const places = mask.flatMap((counts, t) => (counts === 1 ? [t] : []));
  const values = of(places);
  return mask.map((counts, t) => (counts === 1 ? at(values, places.indexOf(t)) : 0));
}

export const tokenRewards = (rewards: Row, policy: Table, reference: Table, mask: Table, factor: number) =>
  mask.map((row, n) =>
    written(row, (places) =>
      places.map((t, index) => {
        const penalty = factor * (cell(policy, n, t) - cell(reference, n, t));
        return (index === places.length - 1 ? at(rewards, n) : 0) - penalty;
      }),
    ),
  );

/** Σ (γλ)ᵏ δ(t + k), by its definition. */
export const gae = (rewards: Table, values: Table, mask: Table, gamma: number, lambda: number) =>
  mask.map((row, n) =>
    written(row, (places) => {
      const errors = places.map((t, index) => {
        const next = places[index + 1];
        return (
          cell(rewards, n, t) + (next === undefined ? 0 : gamma * cell(values, n, next)) - cell(values, n, t)
        );
      });
      return places.map((_, index) =>
        sumOf(errors.slice(index).map((error, later) => (gamma * lambda) ** later * error)),
      );
    }),
  );

export function whitened(values: Table, mask: Table): number[][] {
  const counted = values.flatMap((row, n) => row.filter((_, t) => cell(mask, n, t) === 1));
  const [mean, spread] = [meanOf(counted), deviation(counted)];
  return values.map((row, n) => row.map((each, t) => (cell(mask, n, t) === 1 ? (each - mean) / spread : 0)));
}

export const overlong = (lengths: Row, maxTokens: number, buffer: number) =>
  lengths.map((length) => {
    if (length <= maxTokens - buffer) return 0;
    return length <= maxTokens ? (maxTokens - buffer - length) / buffer : -1;
  });
