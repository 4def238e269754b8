import type { StepFinding } from "./finding.ts";
import { RecentLosses } from "./recent-losses.ts";
import type { AnomalyRules, StepAnomaly } from "./rules.ts";

/** One step's figures, the same on all ranks. */
export interface StepFigures {
  /** Mean over the micro-batches of all ranks. */
  readonly lossNats: number;
  /** L2 norm of the averaged gradient before clipping. */
  readonly gradientNorm: number;
  /** The first rank whose loss is not finite. */
  readonly rank: number | undefined;
  /** The first block whose gradient is not finite. */
  readonly block: string | undefined;
}

/** What is to become of a step. */
export interface Judgement {
  /** Whether its update is left out. */
  readonly skipped: boolean;
  /** What is wrong with it, if anything that is not the loss scale's business. */
  readonly finding: StepFinding | undefined;
}

/** From 2³² down to 1 a scale halves 32 times; what still overflows after three times as many steps will go on to. */
const MAX_SKIPPED_IN_A_ROW = 100;

/**
 * Judges step after step by their figures. Every shard has a judge of its own; all see the same numbers, so all leave the
 * same steps out without asking each other.
 */
export class StepJudge {
  readonly #rules: AnomalyRules;
  readonly #isScaled: boolean;
  readonly #recent: RecentLosses;
  #numSkipped = 0;

  /**
   * @param isScaled - whether the loss is scaled: then gradients that are not finite are a sign of too large a scale
   * @param recentLosses - of the steps before the first that is judged
   */
  constructor(rules: AnomalyRules, isScaled: boolean, recentLosses: readonly number[]) {
    this.#rules = rules;
    this.#isScaled = isScaled;
    this.#recent = new RecentLosses(recentLosses);
  }

  judge(figures: StepFigures): Judgement {
    const found = this.#look(figures);
    this.#recent.add(figures.lossNats);
    const isScales = found?.anomaly === "gradient-not-finite" && this.#isScaled;
    const policy = found === undefined ? undefined : isScales ? "skip" : this.#rules.policies[found.anomaly];
    const skipped = policy === "skip";
    this.#numSkipped = skipped ? this.#numSkipped + 1 : 0;
    if (found === undefined || policy === undefined) return { skipped, finding: undefined };
    const isTooMany = this.#numSkipped > MAX_SKIPPED_IN_A_ROW;
    if (isScales && !isTooMany) return { skipped, finding: undefined };
    const finding = { ...found, policy: isTooMany ? "stop" : policy, numSkipped: this.#numSkipped } as const;
    return { skipped, finding };
  }

  #look({ lossNats, gradientNorm, rank, block }: StepFigures) {
    const found = (anomaly: StepAnomaly, value: number, limit: number) => ({ anomaly, value, limit });
    const largest = Number.MAX_VALUE;
    if (!Number.isFinite(lossNats)) return { ...found("loss-not-finite", lossNats, largest), rank };
    if (!Number.isFinite(gradientNorm))
      return { ...found("gradient-not-finite", gradientNorm, largest), block };
    const limit = this.#recent.limit(this.#rules.spikeDeviations);
    return lossNats > limit ? found("loss-spike", lossNats, limit) : undefined;
  }
}
