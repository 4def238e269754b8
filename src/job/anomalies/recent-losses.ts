/** As many losses as are looked back on: a few per cent of the noise of their median, and a minute of most runs. */
const WINDOW = 64;

/** Fewer say little about how much losses vary. */
const WARM_UP = 16;

/** A normal distribution's deviation, as a multiple of its median absolute one. */
const NORMAL = 1.4826;

/** Losses that hardly vary at all: what differs less than this from the median, relative to it, is no spike. */
const LEAST_DEVIATION = 0.02;

/** The latest finite losses of a run, and what is usual among them. */
export class RecentLosses {
  #losses: number[];

  /** @param losses - of the steps before, in order */
  constructor(losses: readonly number[] = []) {
    this.#losses = losses.filter(Number.isFinite).slice(-WINDOW);
  }

  add(lossNats: number): void {
    if (Number.isFinite(lossNats)) this.#losses = [...this.#losses, lossNats].slice(-WINDOW);
  }

  /**
   * The median and as many deviations; of outliers neither knows, which is why one spike does not hide the next.
   * @returns Infinity until there are enough losses to say
   */
  limit(deviations: number): number {
    if (this.#losses.length < WARM_UP) return Number.POSITIVE_INFINITY;
    const usual = median(this.#losses);
    const deviation = NORMAL * median(this.#losses.map((loss) => Math.abs(loss - usual)));
    return usual + deviations * Math.max(deviation, LEAST_DEVIATION * Math.abs(usual));
  }
}

/** A run's losses by step, for a generation that begins in the middle of it. */
export class LossRecord {
  readonly #losses = new Map<number, number>();

  /** @param losses - of the steps that made `step` of them, in order: what {@link until} gave then */
  constructor(step = 0, losses: readonly number[] = []) {
    for (const [index, loss] of losses.entries()) this.#losses.set(step - losses.length + index + 1, loss);
  }

  /** @param step - steps done; one that is made again has its new loss */
  note(step: number, lossNats: number): void {
    this.#losses.set(step, lossNats);
  }

  /** @returns what {@link RecentLosses} looks back on after `step` steps */
  until(step: number): readonly number[] {
    const known = [...this.#losses].filter(([made, loss]) => made <= step && Number.isFinite(loss));
    return known.slice(-WINDOW).map(([, loss]) => loss);
  }
}

/** Of two in the middle the lower: a value that was measured. @param values - one or more */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] as number;
}
