import type { ConfigField } from "../weights.ts";
import type { WeightRow } from "./weight-map.ts";

/** The fields of a config.json. */
export type Json = Readonly<Record<string, ConfigField>>;

/** The value of a field in ModelCenter's words and in Hugging Face's, null where the latter have none. */
export type Spelling = readonly [theirs: ConfigField, huggingFace: ConfigField];

/** A tensor of a model of ModelCenter, and Hugging Face's that holds the same. */
export type ModelCenterTensor = WeightRow<{
  /** Which of the three maps in one matrix it is: queries, keys or values; undefined where it is all of `here`. */
  readonly third?: number;
  /** Whether Hugging Face has the matrix the other way round. */
  readonly transposed?: boolean;
  /**
   * That another tensor of ModelCenter's stands for `here` as well: `equal`, where both are used and must hold the same; `unread`,
   * where this one is of no use to its model, whatever it holds.
   */
  readonly copy?: "equal" | "unread";
}>;

/** A model as ModelCenter names it. */
export interface ModelCenterModel {
  readonly tensors: readonly ModelCenterTensor[];
  /** Names there of heads that Hugging Face's model has none of. */
  readonly ignored: readonly RegExp[];
  /** Names with Hugging Face of what is a copy, or no parameter. */
  readonly ignoredHere: readonly RegExp[];
}

/** How ModelCenter's configuration and weights of a family correspond to Hugging Face's. */
export interface ModelCenterForm<Config = unknown> {
  /** Hugging Face's architecture: its family's name, and the head of the model that ModelCenter has. */
  readonly architecture: readonly [family: string, head: string];
  /** Whether its model may label positions instead. */
  readonly hasLabels?: boolean;
  /** By ModelCenter's name: the default of its class, and Hugging Face's fields of the same meaning. */
  readonly fields: Readonly<Record<string, readonly [standard: ConfigField, ...names: readonly string[]]>>;
  /** Fields whose values are spelt differently; values that are not listed are unknown, unless they are numbers. */
  readonly spellings?: Readonly<Record<string, readonly Spelling[]>>;
  /** Required values of ModelCenter's other fields for the model to be Hugging Face's; also their values in a file without them. */
  readonly fixed: Json;
  /** Required values of Hugging Face's other fields for ModelCenter to have the model. */
  readonly fixedHere: Json;
  /** Fields of Hugging Face's that must equal others of its. */
  readonly equalHere?: Readonly<Record<string, string>>;
  /** Whether a model of ModelCenter's is of this family. @param has - whether a tensor's name has this part @param config - its own */
  matches(has: (part: string) => boolean, config: Readonly<Record<string, unknown>>): boolean;
  /** All of Hugging Face's fields, with those that it leaves out. Default: as they are. */
  complete?(config: Config): object;
  /** @param head - the part behind `For` in the architecture's name; empty for the stack alone */
  model(config: Config, head: string): ModelCenterModel;
}

/** Fields of every ModelCenter model, with the only values that Hugging Face's models correspond to. */
export const everywhere = { length_scale: false, int8: false };
const withBiases = { ...everywhere, norm_bias: true, att_bias: true, ffn_bias: true, attn_scale: true };
/** The same of its encoders. */
export const encoder = { ...withBiases, pos_bias_type: "none", post_layer_norm: true, tied: true };
/** The same of its decoders. */
export const decoder = { ...withBiases, pos_bias_type: "none", post_layer_norm: false };

/** Hugging Face leaves the inner width of some families to be four times the outer one. */
export function withInnerWidth<Config extends { n_inner: number | null; n_embd: number }>(
  config: Config,
): Config {
  return { ...config, n_inner: config.n_inner ?? 4 * config.n_embd };
}

/** Names that none of Hugging Face's decoders has a parameter for, and copies of the words. */
export function ignoring(isTied: boolean): Pick<ModelCenterModel, "ignored" | "ignoredHere"> {
  return {
    ignored: [/^cls_projection\./],
    ignoredHere: [
      /\.attn\.(bias|masked_bias|embed_positions)$/,
      /rotary_emb\.inv_freq$/,
      ...(isTied ? [/^lm_head\.weight$/] : []),
    ],
  };
}
