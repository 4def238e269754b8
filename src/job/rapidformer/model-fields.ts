import { type Arguments, flagOf } from "./arguments.ts";
import { argumentError } from "./run-parts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Sizes: a config.json and a flag must agree on them. */
type Size = "numLayers" | "hiddenSize" | "numAttentionHeads" | "maxPositionEmbeddings" | "ffnHiddenSize";

/** What a flag may say otherwise than a config.json, since weights do not depend on it. */
type Free = "attentionDropout" | "hiddenDropout" | "layernormEpsilon" | "initMethodStd";

type Names = Readonly<Partial<Record<Size | Free, readonly string[]>>>;

const encoder: Names = {
  numLayers: ["num_hidden_layers"],
  hiddenSize: ["hidden_size"],
  numAttentionHeads: ["num_attention_heads"],
  maxPositionEmbeddings: ["max_position_embeddings"],
  ffnHiddenSize: ["intermediate_size"],
  attentionDropout: ["attention_probs_dropout_prob"],
  hiddenDropout: ["hidden_dropout_prob"],
  layernormEpsilon: ["layer_norm_eps"],
  initMethodStd: ["initializer_range"],
};

const decoder: Names = {
  ...encoder,
  attentionDropout: ["attention_dropout"],
  hiddenDropout: [],
  layernormEpsilon: ["rms_norm_eps"],
};

const gpt: Names = {
  numLayers: ["n_layer"],
  hiddenSize: ["n_embd"],
  numAttentionHeads: ["n_head"],
  maxPositionEmbeddings: ["n_positions"],
  ffnHiddenSize: ["n_inner"],
  attentionDropout: ["attn_pdrop"],
  hiddenDropout: ["resid_pdrop", "embd_pdrop"],
  layernormEpsilon: ["layer_norm_epsilon"],
  initMethodStd: ["initializer_range"],
};

/** What families call the flags' sizes in their config.json; those that are not named call them as BERT does. */
const names: Readonly<Record<string, Names>> = {
  gpt2: gpt,
  gptj: gpt,
  gpt_neox: { ...encoder, attentionDropout: ["attention_dropout"], hiddenDropout: ["hidden_dropout"] },
  opt: {
    ...encoder,
    ffnHiddenSize: ["ffn_dim"],
    attentionDropout: ["attention_dropout"],
    hiddenDropout: ["dropout"],
    layernormEpsilon: [],
    initMethodStd: ["init_std"],
  },
  t5: {
    numLayers: ["num_layers", "num_decoder_layers"],
    hiddenSize: ["d_model"],
    numAttentionHeads: ["num_heads"],
    ffnHiddenSize: ["d_ff"],
    hiddenDropout: ["dropout_rate"],
    layernormEpsilon: ["layer_norm_epsilon"],
  },
  llama: decoder,
  mistral: decoder,
  qwen2: decoder,
};

const sizes: readonly Size[] = [
  "numLayers",
  "hiddenSize",
  "numAttentionHeads",
  "maxPositionEmbeddings",
  "ffnHiddenSize",
];
const free: readonly Free[] = ["attentionDropout", "hiddenDropout", "layernormEpsilon", "initMethodStd"];

/**
 * A model's config.json with what the flags say of its architecture.
 * @param fields - of a folder's config.json; of a family alone (`{ model_type }`) the flags give the sizes
 * @throws {TroupeError} `ARGUMENTS` naming a flag and the field that it contradicts, or a flag that the family has no field for
 */
export function withArchitecture(fields: Fields, args: Arguments): Fields {
  const called = names[String(fields.model_type)] ?? encoder;
  const own: Record<string, unknown> = {};
  for (const size of sizes) {
    if (!(args[size] > 0)) continue;
    for (const field of called[size] ?? []) {
      const stored = fields[field];
      if (stored !== undefined && stored !== null && stored !== args[size])
        throw argumentError(
          `${flagOf(size)} to be ${stored}, the ${field} of the model's config.json`,
          `${args[size]}`,
          "leave the flag out, or name another model",
        );
      own[field] = args[size];
    }
  }
  for (const name of free) {
    const isSaid = name.endsWith("Dropout") ? args[name] >= 0 : args[name] > 0;
    if (!isSaid) continue;
    const ofFamily = called[name] ?? [];
    // A dropout of 0 is what a family without it has.
    if (ofFamily.length === 0 && args[name] > 0)
      throw argumentError(
        `no ${flagOf(name)} of ${fields.model_type}`,
        `${args[name]}`,
        "its config.json has no field for it",
      );
    for (const field of ofFamily) own[field] = args[name];
  }
  // A feed-forward layer is four times as wide unless told otherwise, whatever BERT base has.
  const [width = ""] = called.ffnHiddenSize ?? [];
  const isT5 = fields.model_type === "t5" && args.hiddenSize > 0 && args.numAttentionHeads > 0;
  if (isT5 && fields.d_kv === undefined) own.d_kv = args.hiddenSize / args.numAttentionHeads;
  const isNew = args.hiddenSize > 0 && fields[width] === undefined && own[width] === undefined;
  return { ...fields, ...own, ...(isNew && width !== "n_inner" && { [width]: 4 * args.hiddenSize }) };
}

/** A vocabulary's size as it is padded: to a multiple that ranks which split it share evenly. */
export function paddedVocabulary(size: number, args: Arguments): number {
  const multiple = args.makeVocabSizeDivisibleBy * args.tensorModelParallelSize;
  return Math.ceil(size / multiple) * multiple;
}
