import type { NamesOf } from "../../errors/index.ts";
import { type RampUp, samplesAfter } from "../samples.ts";
import { optionError, refuseUnknown } from "./option-error.ts";
import {
  checkMinLr,
  checkSteps,
  type DecayOptions,
  type Peak,
  remainingAlong,
  type Schedule,
  WarmedUp,
  warmupFactor,
} from "./schedule.ts";

/** Options of {@link MegatronSchedule}. Everything is counted in samples. */
export interface MegatronScheduleOptions {
  readonly style: "constant" | "linear" | "cosine";
  /** Samples in one step, over all ranks; for a growing batch, in the end. */
  readonly batchSize: number;
  /** Growth of the batch to that size. Default: none. */
  readonly rampUp?: Omit<RampUp, "end"> | undefined;
  /** Samples after which the lowest rate is reached; Megatron's lr_decay_iters × batch size. */
  readonly decaySamples: number;
  /** Default: 0. */
  readonly warmupSamples?: number;
  /** Warm-up as a share of `decaySamples`, instead of `warmupSamples`. */
  readonly warmupFraction?: number;
  /** Default: 0. */
  readonly minLr?: number;
}

const MEGATRON_NAMES: NamesOf<MegatronScheduleOptions> = {
  style: true,
  batchSize: true,
  rampUp: true,
  decaySamples: true,
  warmupSamples: true,
  warmupFraction: true,
  minLr: true,
};

/**
 * Megatron-LM's schedule. It counts the samples of earlier updates, so that with warm-up the first update is made at rate 0,
 * and it stands still when a step is skipped.
 */
export class MegatronSchedule implements Schedule {
  readonly peakLr: number;
  readonly style: MegatronScheduleOptions["style"];
  readonly batchSize: number;
  readonly decaySamples: number;
  readonly warmupSamples: number;
  readonly minLr: number;
  readonly #rampUp: RampUp | undefined;

  /** @throws `OPTIMIZER_OPTION` for a number out of range, or warm-up given twice */
  constructor(optimizer: Peak, options: MegatronScheduleOptions) {
    refuseUnknown(options, MEGATRON_NAMES);
    const { warmupFraction, warmupSamples } = options;
    this.peakLr = optimizer.lr;
    this.style = options.style;
    this.batchSize = checkSteps("batchSize", options.batchSize, 1);
    this.decaySamples = checkSteps("decaySamples", options.decaySamples, 1);
    if (!["constant", "linear", "cosine"].includes(this.style))
      throw optionError("style", "constant, linear or cosine", this.style);
    if (warmupFraction !== undefined && warmupSamples !== undefined)
      throw optionError("warmupFraction", "given without warmupSamples", warmupFraction);
    if (warmupFraction !== undefined && !(warmupFraction >= 0 && warmupFraction < 1))
      throw optionError("warmupFraction", "in [0, 1)", warmupFraction);
    this.warmupSamples = warmupSamples ?? (warmupFraction ?? 0) * this.decaySamples;
    if (!(this.warmupSamples >= 0 && this.warmupSamples < this.decaySamples))
      throw optionError("warmupSamples", `from 0 to below ${this.decaySamples}`, this.warmupSamples);
    this.minLr = checkMinLr(options.minLr ?? 0, this.peakLr);
    this.#rampUp = options.rampUp && { ...options.rampUp, end: this.batchSize };
  }

  lrAt(step: number): number {
    const made = Math.max(0, step - 1);
    const samples = this.#rampUp ? samplesAfter(this.#rampUp, 0, made) : made * this.batchSize;
    if (this.warmupSamples > 0 && samples <= this.warmupSamples)
      return (this.peakLr * samples) / this.warmupSamples;
    if (this.style === "constant") return this.peakLr;
    if (samples > this.decaySamples) return this.minLr;
    const progress = (samples - this.warmupSamples) / (this.decaySamples - this.warmupSamples);
    return this.minLr + (this.peakLr - this.minLr) * remainingAlong(this.style, progress);
  }
}

/** transformers' `get_linear_schedule_with_warmup`: with warm-up the first update is made at rate 0. */
export class LinearWithWarmup extends WarmedUp {
  readonly end: number;

  /** @throws `OPTIMIZER_OPTION` for steps that are fractional or out of order */
  constructor(optimizer: Peak, options: { readonly warmup?: number; readonly end: number }) {
    super(optimizer, options, { warmup: true, end: true });
    this.end = checkSteps("end", options.end, this.warmup);
  }

  lrAt(step: number): number {
    const made = Math.max(0, step - 1);
    if (made < this.warmup) return (this.peakLr * made) / Math.max(1, this.warmup);
    return this.peakLr * Math.max(0, (this.end - made) / Math.max(1, this.end - this.warmup));
  }
}

/** Options of {@link WarmupStableDecay}. */
export interface WarmupStableDecayOptions extends DecayOptions {
  /** The step from which the rate falls. */
  readonly stableUntil: number;
  /** How the rate falls: 1 - √progress, in a straight line, or along a cosine. Default: "sqrt". */
  readonly fall?: "sqrt" | "linear" | "cosine";
}

const STABLE_NAMES: NamesOf<WarmupStableDecayOptions> = {
  warmup: true,
  stableUntil: true,
  end: true,
  minLr: true,
  fall: true,
};

/**
 * Warm-up, then the peak for as long as training goes on well, then a short fall.
 * @see Hu et al. 2024 (MiniCPM), https://arxiv.org/abs/2404.06395; the fall by √ after Haegele et al. 2024,
 *   https://arxiv.org/abs/2405.18392
 */
export class WarmupStableDecay extends WarmedUp {
  readonly stableUntil: number;
  readonly end: number;
  readonly minLr: number;
  readonly fall: "sqrt" | "linear" | "cosine";

  /** @throws `OPTIMIZER_OPTION` for steps that are fractional or out of order, or a lowest rate outside [0, peak] */
  constructor(optimizer: Peak, options: WarmupStableDecayOptions) {
    super(optimizer, options, STABLE_NAMES);
    this.stableUntil = checkSteps("stableUntil", options.stableUntil, this.warmup);
    this.end = checkSteps("end", options.end, this.stableUntil);
    this.minLr = checkMinLr(options.minLr ?? 0, this.peakLr);
    this.fall = options.fall ?? "sqrt";
    if (!["sqrt", "linear", "cosine"].includes(this.fall))
      throw optionError("fall", "sqrt, linear or cosine", this.fall);
  }

  lrAt(step: number): number {
    if (step < this.warmup) return this.peakLr * warmupFactor(step, this.warmup);
    if (step <= this.stableUntil) return this.peakLr;
    if (step >= this.end) return this.minLr;
    const progress = (step - this.stableUntil) / (this.end - this.stableUntil);
    return this.minLr + (this.peakLr - this.minLr) * remainingAlong(this.fall, progress);
  }
}
