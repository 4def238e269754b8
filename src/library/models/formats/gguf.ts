// Models in the names of llama.cpp's GGUF files.
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { RopeParameters } from "../rope-parameters.ts";
import type { Task } from "../task-model.ts";
import type { WeightRow } from "./weight-map.ts";

/** A value in a GGUF file's header, by its type. */
export type GgufValue =
  | { readonly uint: number }
  | { readonly float: number }
  | { readonly flag: boolean }
  | { readonly text: string }
  | { readonly texts: readonly string[] }
  | { readonly ints: readonly number[] }
  | { readonly floats: readonly number[] }
  | { readonly bytes: Uint8Array };

/** A tensor of a GGUF file, and the model's tensor that it is made of. */
export type GgufTensor = WeightRow<{
  /** Transposes, cuts or scales the values; must work without memory. Default: unchanged. */
  readonly change?: (values: Tensor) => Tensor;
  /** Whether it stays in float32. Default: vectors do. */
  readonly isExact?: boolean;
}>;

/** A model in llama.cpp's names. */
export interface GgufModel {
  /** llama.cpp's architecture. */
  readonly architecture: string;
  /** Header's values, named without the architecture before them. */
  readonly facts: Readonly<Record<string, GgufValue>>;
  /** Header's values with complete names. Default: none. */
  readonly otherFacts?: Readonly<Record<string, GgufValue>>;
  readonly tensors: readonly GgufTensor[];
  /** Vectors that are computed from the configuration, by name. Default: none. */
  readonly computed?: Readonly<Record<string, readonly number[]>>;
  /** Names of parameters that llama.cpp has no use for. Default: none. */
  readonly unread?: RegExp;
}

/** Maps a family to a llama.cpp architecture. */
export interface GgufForm<Config = unknown> {
  /** Features of a model that the architecture lacks, in words. @returns undefined if it has all */
  lacks(config: Config, task: Task): string | undefined;
  model(config: Config, task: Task): GgufModel;
}

/** The first of some features that a model has; undefined if it has none. @param features - by their words */
export function firstOf(features: Readonly<Record<string, boolean>>): string | undefined {
  return Object.keys(features).find((feature) => features[feature]);
}

/** Header's values that are whole numbers. */
export function uints(numbers: Readonly<Record<string, number>>): Record<string, GgufValue> {
  return Object.fromEntries(Object.entries(numbers).map(([name, uint]) => [name, { uint }]));
}

/** Header's values that are floats. */
export function floats(numbers: Readonly<Record<string, number>>): Record<string, GgufValue> {
  return Object.fromEntries(Object.entries(numbers).map(([name, float]) => [name, { float }]));
}

/** A matrix with rows and columns exchanged. */
export const transposed = { change: (values: Tensor): Tensor => values.t() };

/** Whether llama.cpp's GELU, which is always the tanh form, is a config's activation. */
export function isGelu(activation: string): boolean {
  return activation.startsWith("gelu") && activation !== "gelu_10";
}

/** The kind of rotary positions that llama.cpp has not, in words. @param kinds - that the architecture has besides the default */
export function unknownRope(
  rope: RopeParameters,
  kinds: readonly RopeParameters["rope_type"][],
): string | undefined {
  const { rope_type: kind, attention_factor, beta_fast = 32, beta_slow = 1, mscale, truncate = true } = rope;
  if (kind !== "default" && !kinds.includes(kind)) return `rope_type ${kind}`;
  const isUsual =
    attention_factor === undefined &&
    beta_fast === 32 &&
    beta_slow === 1 &&
    mscale === undefined &&
    truncate === true;
  return kind === "yarn" && !isUsual ? "yarn with settings of its own" : undefined;
}

/** Header's values of rotary positions. @param width - rotated features of a head */
export function ropeFacts(rope: RopeParameters, width: number): Record<string, GgufValue> {
  const { rope_type: kind, rope_theta, factor = 1, original_max_position_embeddings: original = 0 } = rope;
  const scales = kind === "linear" || kind === "yarn";
  return {
    ...uints({ "rope.dimension_count": width }),
    ...floats({ "rope.freq_base": rope_theta }),
    ...(scales && { "rope.scaling.type": { text: kind }, "rope.scaling.factor": { float: factor } }),
    ...(kind === "yarn" && uints({ "rope.scaling.original_context_length": original })),
  };
}
