import type { ConfigField } from "../weights.ts";
import { below, modules, type WeightRow, type weights } from "./weight-map.ts";

/** The fields of a config.json. */
export type Json = Readonly<Record<string, ConfigField>>;

/** A field's value in ModelCenter's spelling and in Hugging Face's, null if the latter has none. */
export type Spelling = readonly [theirs: ConfigField, huggingFace: ConfigField];

/** A tensor of a ModelCenter model, and Hugging Face's equal tensor. */
export type ModelCenterTensor = WeightRow<{
  /** Its index among the three maps of one matrix: queries, keys and values; undefined if it is all of `here`. */
  readonly third?: number;
  /** Whether Hugging Face has the matrix transposed. */
  readonly transposed?: boolean;
  /**
   * Set if another ModelCenter tensor maps to `here` too: `equal`, if both are used and must have the same values; `unread`, if the
   * model does not use this one.
   */
  readonly copy?: "equal" | "unread";
}>;

/** A model in ModelCenter's names. */
export interface ModelCenterModel {
  readonly tensors: readonly ModelCenterTensor[];
  /** Names of heads that Hugging Face's model lacks. */
  readonly ignored: readonly RegExp[];
  /** Hugging Face's names of copies, and of entries that are not parameters. */
  readonly ignoredHere: readonly RegExp[];
}

/** Maps ModelCenter's configuration and weights of a family to Hugging Face's. */
export interface ModelCenterForm<Config = unknown> {
  /** Hugging Face's architecture: the family's name, and the head of ModelCenter's model. */
  readonly architecture: readonly [family: string, head: string];
  /** Whether the model may have a head for token labels instead. */
  readonly hasLabels?: boolean;
  /** By ModelCenter's name: the default of its class, and Hugging Face's fields of the same meaning. */
  readonly fields: Readonly<Record<string, readonly [standard: ConfigField, ...names: readonly string[]]>>;
  /** Fields with other spellings of values; unlisted values are refused, unless they are numbers. */
  readonly spellings?: Readonly<Record<string, readonly Spelling[]>>;
  /** Values of ModelCenter's other fields that Hugging Face's model requires; also their defaults. */
  readonly fixed: Json;
  /** Values of Hugging Face's other fields that ModelCenter requires. */
  readonly fixedHere: Json;
  /** Hugging Face's fields that must equal others of its own. */
  readonly equalHere?: Readonly<Record<string, string>>;
  /** Whether a ModelCenter model is of this family. @param has - whether a tensor's name has this part @param config - ModelCenter's */
  matches(has: (part: string) => boolean, config: Readonly<Record<string, unknown>>): boolean;
  /** Adds Hugging Face's omitted fields. Default: none. */
  complete?(config: Config): object;
  /** @param head - the architecture's name after `For`; empty without a head */
  model(config: Config, head: string): ModelCenterModel;
}

/** Fields of every ModelCenter model, with the only values that Hugging Face's models allow. */
export const everywhere = { length_scale: false, int8: false };
const withBiases = { ...everywhere, norm_bias: true, att_bias: true, ffn_bias: true, attn_scale: true };
/** Fields of every encoder of ModelCenter. */
export const encoder = { ...withBiases, pos_bias_type: "none", post_layer_norm: true, tied: true };
/** Fields of every decoder of ModelCenter. */
export const decoder = { ...withBiases, pos_bias_type: "none", post_layer_norm: false };

/**
 * ModelCenter's attention in a half of a layer.
 * @param there - the half: `self_att` @param here - Hugging Face's name of it
 * @param names - Hugging Face's names of the maps of queries, keys and values, and of the output
 */
export function attentionMaps(
  there: string,
  here: string,
  [project_q, project_k, project_v, attention_out]: readonly [string, string, string, string],
  rows: typeof weights | typeof modules = modules,
): ModelCenterTensor[] {
  const maps = rows({ project_q, project_k, project_v, attention_out });
  return below(`${there}.self_attention`, here, maps);
}

/** Fills in the inner width, which Hugging Face leaves null for four times the width. */
export function withInnerWidth<Config extends { n_inner: number | null; n_embd: number }>(
  config: Config,
): Config {
  return { ...config, n_inner: config.n_inner ?? 4 * config.n_embd };
}

/** Names that Hugging Face's decoders lack, and copies of the embedding. */
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
