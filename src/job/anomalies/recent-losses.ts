/** Number of recent losses: enough for a median with a few per cent of noise, and a minute of most runs. */
const WINDOW = 64;

/** With fewer losses their variation is unknown. */
const WARM_UP = 16;

/** Standard deviation of a normal distribution, as a multiple of its median absolute deviation. */
const NORMAL = 1.4826;

/** Smallest deviation, as a share of the median: for losses that hardly vary. */
const LEAST_DEVIATION = 0.02;

/** The latest finite losses of a run, and the limit for a spike. */
export class RecentLosses {
  #losses: number[];

  /** @param losses - of earlier steps, in order */
  constructor(losses: readonly number[]) {
    this.#losses = losses.filter(Number.isFinite).slice(-WINDOW);
  }

  add(lossNats: number): void {
    if (Number.isFinite(lossNats)) this.#losses = [...this.#losses, lossNats].slice(-WINDOW);
  }

  /** The median plus a number of deviations, which one spike hardly changes. @returns Infinity until there are enough losses */
  limit(deviations: number): number {
    if (this.#losses.length < WARM_UP) return Number.POSITIVE_INFINITY;
    const usual = median(this.#losses);
    const deviation = NORMAL * median(this.#losses.map((loss) => Math.abs(loss - usual)));
    return usual + deviations * Math.max(deviation, LEAST_DEVIATION * Math.abs(usual));
  }
}

/** A run's losses by step, for a generation that starts in the middle of the run. */
export class LossRecord {
  readonly #losses = new Map<number, number>();
  /** The first step with a loss. */
  #first: number;

  /** @param losses - the last losses of `step` steps, in order: an earlier result of {@link until} */
  constructor(step = 0, losses: readonly number[] = []) {
    this.#first = step - losses.length + 1;
    for (const [index, loss] of losses.entries()) this.#losses.set(this.#first + index, loss);
  }

  /** @param step - steps done; a repeated step replaces its loss */
  note(step: number, lossNats: number): void {
    this.#losses.set(step, lossNats);
    this.#first = Math.min(this.#first, step);
  }

  /** @returns the losses that {@link RecentLosses} needs after `step` steps */
  until(step: number): readonly number[] {
    const losses: number[] = [];
    // Back from the step: a save costs the same after a million steps.
    for (let made = step; made >= this.#first && losses.length < WINDOW; made--) {
      const loss = this.#losses.get(made);
      if (loss !== undefined && Number.isFinite(loss)) losses.push(loss);
    }
    return losses.reverse();
  }
}

/** The median; of two middle values the lower, which was measured. @param values - one or more */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] as number;
}
