import { callUser, type NamesOf } from "../../errors/index.ts";
import { atLeastZero } from "./checks.ts";
import { optionError, refuseUnknown } from "./option-error.ts";

/**
 * The learning rate as a pure function of the step, so that it needs no state in a checkpoint. Steps are counted as
 * AdamW counts them: the first update uses `lrAt(1)`; warm-up starts from `lrAt(0)`.
 */
export interface Schedule {
  /** Learning rate of optimizer step `step`. */
  lrAt(step: number): number;
}

/** @returns the learning rate of a step. @throws {TroupeError} `OPTIMIZER_OPTION` if the schedule gives no rate */
export function rateAt(schedule: Schedule, step: number): number {
  return atLeastZero(
    `lrAt(${step})`,
    callUser("lrAt(…) of the job's schedule", () => schedule.lrAt(step)),
  );
}

/** The source of a schedule's peak: an optimizer. */
export interface Peak {
  readonly lr: number;
}

/** Steps of linear warm-up from 0 to the peak. */
export interface WarmupOptions {
  /** In steps. Default: 0, no warm-up. */
  readonly warmup?: number;
}

/** A schedule that falls to its lowest rate at step `end` and stays there. */
export interface DecayOptions extends WarmupOptions {
  /** The step at which the lowest rate is reached; not before the end of warm-up. */
  readonly end: number;
  /** The lowest rate, at most the peak. Default: 0. */
  readonly minLr?: number;
}

/** The base of schedules with warm-up to the optimizer's rate. */
export abstract class WarmedUp implements Schedule {
  readonly peakLr: number;
  readonly warmup: number;

  /** @param names - of the schedule's options */
  constructor(optimizer: Peak, options: WarmupOptions, names: Readonly<Record<string, true>>) {
    refuseUnknown(options, names);
    this.peakLr = optimizer.lr;
    this.warmup = checkSteps("warmup", options.warmup ?? 0, 0);
  }

  abstract lrAt(step: number): number;
}

/** The peak, after warm-up. */
export class Constant extends WarmedUp {
  /** @throws `OPTIMIZER_OPTION` for a negative or fractional warm-up */
  constructor(optimizer: Peak, options: WarmupOptions = {}) {
    super(optimizer, options, { warmup: true });
  }

  lrAt(step: number): number {
    return this.peakLr * warmupFactor(step, this.warmup);
  }
}

const DECAY_NAMES: NamesOf<DecayOptions> = { warmup: true, end: true, minLr: true };

abstract class Decay extends WarmedUp {
  readonly end: number;
  readonly minLr: number;

  /** @throws `OPTIMIZER_OPTION` for steps that are fractional or out of order, or a lowest rate outside [0, peak] */
  constructor(optimizer: Peak, options: DecayOptions, names: Readonly<Record<string, true>> = DECAY_NAMES) {
    super(optimizer, options, names);
    this.end = checkSteps("end", options.end, this.warmup);
    this.minLr = checkMinLr(options.minLr ?? 0, this.peakLr);
  }

  lrAt(step: number): number {
    if (step < this.warmup) return this.peakLr * warmupFactor(step, this.warmup);
    if (step >= this.end) return this.minLr;
    const progress = (step - this.warmup) / (this.end - this.warmup);
    return this.minLr + (this.peakLr - this.minLr) * this.remaining(progress);
  }

  /** Share of the fall that is still ahead: 1 at progress 0, 0 at progress 1. */
  protected abstract remaining(progress: number): number;
}

/** Warm-up, then a straight line down. */
export class LinearDecay extends Decay {
  protected override remaining(progress: number): number {
    return 1 - progress;
  }
}

/** Options of {@link Cosine}. */
export interface CosineOptions extends DecayOptions {
  /** Past the end the rate stays at its lowest, or rises again along the cosine, as BMTrain's does. Default: "stay". */
  readonly afterEnd?: "stay" | "rise";
}

/**
 * Warm-up, then half a cosine down.
 * @see Loshchilov and Hutter 2017, https://arxiv.org/abs/1608.03983
 */
export class Cosine extends Decay {
  readonly afterEnd: "stay" | "rise";

  /** @throws `OPTIMIZER_OPTION` as {@link LinearDecay} does, or for an unknown `afterEnd` */
  constructor(optimizer: Peak, options: CosineOptions) {
    super(optimizer, options, { ...DECAY_NAMES, afterEnd: true });
    this.afterEnd = options.afterEnd ?? "stay";
    if (this.afterEnd !== "stay" && this.afterEnd !== "rise")
      throw optionError("afterEnd", "stay or rise", this.afterEnd);
  }

  override lrAt(step: number): number {
    if (this.afterEnd === "stay" || step < this.end) return super.lrAt(step);
    const progress = (step - this.warmup) / Math.max(1, this.end - this.warmup);
    return this.minLr + (this.peakLr - this.minLr) * this.remaining(progress);
  }

  protected override remaining(progress: number): number {
    return remainingAlong("cosine", progress);
  }
}

/** The share of a fall that is still ahead, by its form: 1 - √progress, a straight line, or half a cosine. */
export function remainingAlong(fall: "sqrt" | "linear" | "cosine", progress: number): number {
  if (fall === "sqrt") return 1 - Math.sqrt(progress);
  return fall === "linear" ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2;
}

/**
 * Warm-up to lr/√warmup, then lr/√step: the optimizer's rate is that of step 1 of the falling branch.
 * @see Vaswani et al. 2017 §5.3, https://arxiv.org/abs/1706.03762
 */
export class Noam implements Schedule {
  readonly lr: number;
  readonly warmup: number;

  /** @throws `OPTIMIZER_OPTION` unless warm-up is a whole number ≥ 1 */
  constructor(optimizer: Peak, options: { readonly warmup: number }) {
    refuseUnknown(options, { warmup: true });
    this.lr = optimizer.lr;
    this.warmup = checkSteps("warmup", options.warmup, 1);
  }

  lrAt(step: number): number {
    return (this.lr / Math.sqrt(Math.max(step, this.warmup))) * warmupFactor(step, this.warmup);
  }
}

/** Warm-up, then the peak times gamma a step. BMTrain's fifth schedule. */
export class Exponential extends WarmedUp {
  readonly gamma: number;

  /** @throws `OPTIMIZER_OPTION` for a negative or fractional warm-up, or a gamma outside (0, 1] */
  constructor(optimizer: Peak, options: WarmupOptions & { readonly gamma?: number } = {}) {
    super(optimizer, options, { warmup: true, gamma: true });
    this.gamma = options.gamma ?? 0.95;
    if (!(this.gamma > 0 && this.gamma <= 1)) throw optionError("gamma", "in (0, 1]", this.gamma);
  }

  lrAt(step: number): number {
    if (step < this.warmup) return this.peakLr * warmupFactor(step, this.warmup);
    return this.peakLr * this.gamma ** (step - this.warmup);
  }
}

/** @returns the share of the peak during warm-up, 1 from its end on */
export function warmupFactor(step: number, warmup: number): number {
  return step < warmup ? step / warmup : 1;
}

/** @throws `OPTIMIZER_OPTION` for a lowest rate outside [0, peak] */
export function checkMinLr(minLr: number, peakLr: number): number {
  if (minLr >= 0 && minLr <= peakLr) return minLr;
  throw optionError("minLr", `between 0 and the peak ${peakLr}`, minLr);
}

/** @throws `OPTIMIZER_OPTION` unless `steps` is a whole number from `lowest` on */
export function checkSteps(option: string, steps: number, lowest: number): number {
  if (Number.isSafeInteger(steps) && steps >= lowest) return steps;
  throw optionError(option, `a whole number of steps ≥ ${lowest}`, steps);
}
