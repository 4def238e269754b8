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

/** The decision about a step. */
export interface Judgement {
  /** Whether its update is skipped. */
  readonly skipped: boolean;
  /** The anomaly, if any; overflows that the loss scale handles are none. */
  readonly finding: StepFinding | undefined;
}

/** A scale needs 32 halvings from 2³² to 1; after three times as many skipped steps the overflow is permanent. */
const MAX_SKIPPED_IN_A_ROW = 100;

/** Judges each step by its figures. Every shard has its own judge; all get the same numbers, so they agree without communication. */
export class StepJudge {
  readonly #rules: AnomalyRules;
  readonly #isScaled: boolean;
  readonly #recent: RecentLosses;
  #numSkipped = 0;

  /**
   * @param isScaled - whether the loss is scaled: a gradient that is not finite then means that the scale is too large
   * @param recentLosses - of the steps before
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
