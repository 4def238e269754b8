import { configOfFile } from "../config-fields.ts";
import { gptNeoXConfig } from "./config.ts";

/** Layers of GPT-NeoX's pipeline that stand before the first of its stack: the words, and a change of dims. */
const NUM_BEFORE = 2;

/** A GPT-NeoX as its own checkpoints name it, `LAYER.NAME` by the layer of its pipeline. Every map lies there as with Hugging Face. */
export interface NeoXModel {
  /** Hugging Face's name of each tensor. */
  readonly names: ReadonlyMap<string, string>;
  /** What is no parameter: frequencies, and masks of old checkpoints. */
  readonly ignored: RegExp;
}

/**
 * How GPT-NeoX names the model that a Hugging Face config.json describes.
 * @throws {TroupeError} `MODEL_CONFIG` for another family
 */
export function neoxModel(config: Readonly<Record<string, unknown>>): NeoXModel {
  const {
    num_hidden_layers: numLayers,
    tie_word_embeddings: isTied,
    attention_bias: hasBias,
  } = gptNeoXConfig(configOfFile(config));
  const norms = ["input_layernorm", "post_attention_layernorm"];
  const attention = ["attention.query_key_value", "attention.dense"];
  const feedForward = ["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"];
  const inLayer = [
    ...[...norms, ...attention, ...feedForward].map((name) => `${name}.weight`),
    ...[...norms, ...(hasBias ? attention : []), ...feedForward].map((name) => `${name}.bias`),
  ];
  const layers = Array.from({ length: numLayers }, (_, index) =>
    inLayer.map((name) => [`${NUM_BEFORE + index}.${name}`, `gpt_neox.layers.${index}.${name}`] as const),
  );
  const behind = NUM_BEFORE + numLayers + 1; // one that changes dims back lies between
  const names = new Map([
    ["0.word_embeddings.weight", "gpt_neox.embed_in.weight"] as const,
    ...layers.flat(),
    [`${behind}.norm.weight`, "gpt_neox.final_layer_norm.weight"] as const,
    [`${behind}.norm.bias`, "gpt_neox.final_layer_norm.bias"] as const,
    ...(isTied ? [] : [[`${behind + 1}.final_linear.weight`, "lm_head.weight"] as const]),
  ]);
  return { names, ignored: /\.(rotary_emb\.inv_freq|attention\.(bias|masked_bias))$/ };
}
