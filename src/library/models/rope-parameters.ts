import * as nn from "../../compute/nn/index.ts";
import { checkField, type Field, type Fields, flag, positive } from "./config-fields.ts";

/** Parameters of rotary positions, by the names of Hugging Face's `rope_parameters`. */
export interface RopeParameters {
  readonly rope_theta: number;
  readonly rope_type: nn.RotaryScaling["kind"];
  /** Share of a head's features that is rotated. Default: all. */
  readonly partial_rotary_factor?: number;
  /** For all kinds but default; optional for longrope. */
  readonly factor?: number;
  /** For llama3. */
  readonly low_freq_factor?: number;
  readonly high_freq_factor?: number;
  /** For llama3, yarn and longrope. */
  readonly original_max_position_embeddings?: number;
  /** For yarn and longrope. Default: computed from the others. */
  readonly attention_factor?: number;
  /** For yarn. */
  readonly beta_fast?: number;
  readonly beta_slow?: number;
  readonly mscale?: number;
  readonly mscale_all_dim?: number;
  readonly truncate?: boolean;
  /** For longrope: a divisor for each pair of features. */
  readonly short_factor?: readonly number[];
  readonly long_factor?: readonly number[];
}

/** The fields of a configuration that decide rotary positions. */
export interface RotaryConfig {
  readonly rope_parameters: RopeParameters;
  readonly max_position_embeddings: number;
}

/** Fields for rotary positions in any release of transformers. */
export const ropeNames = [
  ...["rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"],
  "original_max_position_embeddings",
];

/**
 * Computes the angles of the current positions.
 * @param width - R, rotated features of a head @param length - T, current positions
 */
export function ropeAngles(config: RotaryConfig, width: number, length: number): nn.RotaryAngles {
  const scaling = scalingOf(config);
  const past = nn.numPast();
  const frequencies = nn.rotaryFrequencies(width, config.rope_parameters.rope_theta, scaling, past + length);
  return nn.rotaryAngles(frequencies, length, past, nn.attentionFactorOf(scaling));
}

/** The rotary scaling of a configuration. */
export function scalingOf({
  rope_parameters: rope,
  max_position_embeddings: maxPositions,
}: RotaryConfig): nn.RotaryScaling {
  const { rope_type: kind, original_max_position_embeddings: numPositions = maxPositions } = rope;
  const { factor = maxPositions / numPositions } = rope;
  switch (kind) {
    case "default":
      return { kind };
    case "linear":
      return { kind, factor };
    case "dynamic":
      return { kind, factor, numPositions: maxPositions };
    case "llama3": {
      const { low_freq_factor: lowTurns = 1, high_freq_factor: highTurns = 4 } = rope;
      return { kind, factor, lowTurns, highTurns, numPositions };
    }
    case "yarn": {
      const { beta_fast: fastTurns = 32, beta_slow: slowTurns = 1, truncate: truncated = true } = rope;
      const attentionFactor = rope.attention_factor ?? sharpness(factor, rope);
      return { kind, factor, numPositions, fastTurns, slowTurns, truncated, attentionFactor };
    }
    case "longrope": {
      const { short_factor: short = [], long_factor: long = [] } = rope;
      const usual = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(numPositions));
      return { kind, short, long, numPositions, attentionFactor: rope.attention_factor ?? usual };
    }
  }
}

/** Number of positions that a configuration's angles are made for; dynamic scaling applies beyond it. */
export function longestContext({
  rope_parameters: rope,
  max_position_embeddings: maxPositions,
}: RotaryConfig): number {
  return rope.rope_type === "dynamic" ? Math.ceil(maxPositions * (rope.factor ?? 1)) : maxPositions;
}

/** Whether a configuration's angles depend on the length of the text. */
export function turnsByLength({ rope_parameters: { rope_type } }: RotaryConfig): boolean {
  return rope_type === "dynamic" || rope_type === "longrope";
}

/** Fields of each kind of rope besides the base. */
const ropeFields: Readonly<Record<nn.RotaryScaling["kind"], Fields>> = {
  default: {},
  linear: { factor: positiveNumber() },
  dynamic: { factor: positiveNumber() },
  llama3: {
    factor: positiveNumber(),
    low_freq_factor: positiveNumber(),
    high_freq_factor: positiveNumber(),
    original_max_position_embeddings: optional(positiveNumber()),
  },
  yarn: {
    factor: optional(positiveNumber()),
    original_max_position_embeddings: optional(positiveNumber()),
    attention_factor: optional(positiveNumber()),
    beta_fast: optional(positiveNumber()),
    beta_slow: optional(positiveNumber()),
    mscale: optional(positiveNumber()),
    mscale_all_dim: optional(positiveNumber()),
    truncate: optional(flag(true)),
  },
  longrope: {
    factor: optional(positiveNumber()),
    original_max_position_embeddings: optional(positiveNumber()),
    attention_factor: optional(positiveNumber()),
    short_factor: divisors(),
    long_factor: divisors(),
  },
};

/**
 * Reads rotary positions as given in transformers 4 (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`).
 * @param model.headWidth - K @param model.partial - the family's default share of rotated features, if the share may vary
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function ropeOf(
  where: string,
  given: Readonly<Record<string, unknown>>,
  { maxPositions, headWidth, partial: usual }: { maxPositions: number; headWidth: number; partial?: number },
): RopeParameters {
  const merged = {
    ...(given.rope_scaling as object | null),
    ...(given.rope_parameters as object | null),
  } as Readonly<Record<string, unknown>>;
  const type = (merged.rope_type ?? merged.type ?? "default") as nn.RotaryScaling["kind"];
  const kinds = Object.keys(ropeFields);
  checkField(where, "rope_type", kinds.includes(type), `one of ${kinds.join(", ")}`, type);
  const part = merged.partial_rotary_factor ?? given.partial_rotary_factor ?? usual ?? 1;
  checkField(where, "partial_rotary_factor", usual !== undefined || part === 1, "1 or absent", part);
  const width = Math.floor(headWidth * Number(part));
  const turns = width >= 2 && width <= headWidth && width % 2 === 0;
  checkField(where, "partial_rotary_factor", turns, `an even part of ${headWidth} features of a head`, part);
  const theta = merged.rope_theta ?? given.rope_theta ?? 10000;
  const { holds, expected } = positiveNumber();
  checkField(where, "rope_theta", holds(theta), expected, theta);
  const rope: Record<string, unknown> = {
    rope_theta: theta,
    rope_type: type,
    ...(usual !== undefined && { partial_rotary_factor: part }),
  };
  for (const [name, field] of Object.entries(ropeFields[type])) {
    // Phi and similar models have it outside the rope's own parameters.
    const beside = name === "original_max_position_embeddings" ? given[name] : undefined;
    const value = merged[name] ?? beside ?? undefined;
    checkField(where, name, field.holds(value), field.expected, value);
    if (value !== undefined) rope[name] = value;
  }
  const { low_freq_factor: low = 0, high_freq_factor: high = 1 } = rope as Partial<RopeParameters>;
  checkField(where, "high_freq_factor", high > low, `above low_freq_factor = ${low}`, high);
  for (const name of ["short_factor", "long_factor"] as const) {
    const numbers = (rope as Partial<RopeParameters>)[name];
    const fits = numbers === undefined || numbers.length === width / 2;
    checkField(where, name, fits, `${width / 2} numbers, one for each pair of features`, numbers);
  }
  const needs = "original_max_position_embeddings" in ropeFields[type];
  return { ...(needs && { original_max_position_embeddings: maxPositions }), ...rope } as RopeParameters;
}

// As in transformers' `_compute_yarn_parameters`.
function sharpness(factor: number, { mscale, mscale_all_dim }: RopeParameters): number {
  const of = (scale: number) => (factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1);
  return mscale === undefined || mscale_all_dim === undefined ? of(1) : of(mscale) / of(mscale_all_dim);
}

function positiveNumber(): Field<unknown> {
  return positive(1) as Field<unknown>;
}

function optional(field: Field<unknown>): Field<unknown> {
  return { ...field, holds: (value) => value === undefined || field.holds(value) };
}

function divisors(): Field<unknown> {
  const { holds } = positive(1);
  return {
    default: undefined,
    expected: "a list of positive numbers",
    holds: (value) => Array.isArray(value) && value.every(holds),
  };
}
