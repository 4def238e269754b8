import { initialLossScale, type LossScaleRule } from "../optim/index.ts";
import type { AutocastDType, DType } from "../tensor/index.ts";
import { optionError } from "./option-error.ts";

/**
 * What a rank computes in; masters and optimizer state are always float32.
 * - `fp32`: everything in float32;
 * - `bf16`, `fp16`: weights, activations and gradients are narrow, each update is made on a float32 master;
 * - `amp-bf16`, `amp-fp16`: weights and gradients are float32, libtorch's autocast casts operator by operator.
 */
export type Precision = (typeof precisions)[number];

/** Every {@link Precision}. */
export const precisions = ["fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"] as const;

/** What a {@link Precision} means. */
export interface PrecisionPlan {
  readonly name: Precision;
  /** Of the parameters that the ranks compute with. */
  readonly weights: DType;
  /** What autocast casts to; undefined: there is none. */
  readonly autocast: AutocastDType | undefined;
}

/** @returns what a precision means for the ranks */
export function precisionPlan(name: Precision): PrecisionPlan {
  const narrow = name.endsWith("bf16") ? "bfloat16" : "float16";
  if (name === "fp32") return { name, weights: "float32", autocast: undefined };
  if (name.startsWith("amp")) return { name, weights: "float32", autocast: narrow };
  return { name, weights: narrow, autocast: undefined };
}

/**
 * @returns the rule of the loss scale: what is asked for; where nothing is, torch's in float16, whose smallest numbers
 *   gradients fall below, and none elsewhere
 * @throws {TroupeError} `OPTION` or `OPTIMIZER_OPTION` for a scale that is not positive, or a rule out of range
 */
export function lossScaleOf(options: {
  readonly precision?: Precision;
  readonly lossScale?: number | LossScaleRule;
}): LossScaleRule | undefined {
  const { precision = "fp32", lossScale } = options;
  if (lossScale === undefined) return precision.endsWith("fp16") ? { kind: "torch" } : undefined;
  if (typeof lossScale === "number" && !(lossScale > 0 && lossScale < Number.POSITIVE_INFINITY))
    throw optionError("lossScale", "a positive number or a rule", lossScale);
  const rule: LossScaleRule =
    typeof lossScale === "number" ? { kind: "static", scale: lossScale } : lossScale;
  initialLossScale(rule);
  return rule;
}

/** How narrow weights are made of their float32 masters. */
export type Rounding = "nearest" | "stochastic";

/** @throws {TroupeError} `OPTION` for a rounding of nobody, or by chance where there is nothing narrow to round to */
export function roundingOf(options: {
  readonly precision?: Precision;
  readonly rounding?: Rounding;
}): Rounding {
  const { precision = "fp32", rounding = "nearest" } = options;
  if (rounding === "nearest") return rounding;
  if (rounding !== "stochastic") throw optionError("rounding", "nearest or stochastic", rounding);
  if (precisionPlan(precision).weights !== "float32") return rounding;
  throw optionError("rounding", `nearest with ${precision}, whose weights are their masters`, rounding);
}
