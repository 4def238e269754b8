import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type JsonObject,
  saveHuggingFaceFolder,
  type TensorSource,
} from "../../src/library/checkpoint/index.ts";

/** The config and tensors of a family's model, of the sizes that tests use. */
export interface SmallModel {
  readonly config: JsonObject;
  readonly tensors: Readonly<Record<string, readonly number[]>>;
  /** Tensors that hold what others do, by their names. */
  readonly copies?: Readonly<Record<string, string>>;
}

const [layers, width, inner, tokens, places] = [4, 8, 32, 10, 6];

function both(name: string, weight: readonly number[], bias: number): Record<string, readonly number[]> {
  return { [`${name}.weight`]: weight, [`${name}.bias`]: [bias] };
}

function eachLayer(tensorsOf: (index: number) => Record<string, readonly number[]>) {
  return Object.assign({}, ...Array.from({ length: layers }, (_, index) => tensorsOf(index)));
}

/** A GPT-2 of four layers and four heads. */
export const smallGpt: SmallModel = {
  config: {
    model_type: "gpt2",
    n_layer: layers,
    n_head: 4,
    n_embd: width,
    n_positions: places,
    vocab_size: tokens,
    // As files have it, and no model.
    n_ctx: places,
  },
  tensors: {
    "transformer.wte.weight": [tokens, width],
    "transformer.wpe.weight": [places, width],
    ...eachLayer((index) => ({
      ...both(`transformer.h.${index}.ln_1`, [width], width),
      ...both(`transformer.h.${index}.attn.c_attn`, [width, 3 * width], 3 * width),
      ...both(`transformer.h.${index}.attn.c_proj`, [width, width], width),
      ...both(`transformer.h.${index}.ln_2`, [width], width),
      ...both(`transformer.h.${index}.mlp.c_fc`, [width, inner], inner),
      ...both(`transformer.h.${index}.mlp.c_proj`, [inner, width], width),
    })),
    ...both("transformer.ln_f", [width], width),
  },
};

/** Megatron-LM's BERT, as `MegatronBertForPreTraining` of transformers names it; its names are from its `named_parameters()`. */
export const smallBert: SmallModel = {
  config: {
    model_type: "megatron-bert",
    num_hidden_layers: layers,
    num_attention_heads: 4,
    vocab_size: tokens,
  },
  tensors: {
    "bert.embeddings.word_embeddings.weight": [tokens, width],
    "bert.embeddings.position_embeddings.weight": [places, width],
    "bert.embeddings.token_type_embeddings.weight": [2, width],
    ...eachLayer((index) => ({
      ...both(`bert.encoder.layer.${index}.attention.ln`, [width], width),
      ...both(`bert.encoder.layer.${index}.attention.self.query`, [width, width], width),
      ...both(`bert.encoder.layer.${index}.attention.self.key`, [width, width], width),
      ...both(`bert.encoder.layer.${index}.attention.self.value`, [width, width], width),
      ...both(`bert.encoder.layer.${index}.attention.output.dense`, [width, width], width),
      ...both(`bert.encoder.layer.${index}.ln`, [width], width),
      ...both(`bert.encoder.layer.${index}.intermediate.dense`, [inner, width], inner),
      ...both(`bert.encoder.layer.${index}.output.dense`, [width, inner], width),
    })),
    ...both("bert.encoder.ln", [width], width),
    ...both("bert.pooler.dense", [width, width], width),
    "cls.predictions.bias": [tokens],
    ...both("cls.predictions.transform.dense", [width, width], width),
    ...both("cls.predictions.transform.LayerNorm", [width], width),
    ...both("cls.seq_relationship", [2, width], 2),
  },
};

/** Megatron-LM's T5, as `BlenderbotForConditionalGeneration` of transformers names it; its names are from its `state_dict()`. */
export const smallT5: SmallModel = {
  config: {
    model_type: "blenderbot",
    encoder_layers: layers,
    decoder_layers: layers,
    encoder_attention_heads: 4,
    decoder_attention_heads: 4,
    encoder_ffn_dim: inner,
    decoder_ffn_dim: inner,
    d_model: width,
    max_position_embeddings: places,
    vocab_size: tokens,
  },
  tensors: {
    final_logits_bias: [1, tokens],
    "model.shared.weight": [tokens, width],
    ...Object.assign(
      {},
      ...["encoder", "decoder"].map((stack) => ({
        [`model.${stack}.embed_positions.weight`]: [places, width],
        ...eachLayer((index) => {
          const layer = `model.${stack}.layers.${index}`;
          const attentions = stack === "encoder" ? ["self_attn"] : ["self_attn", "encoder_attn"];
          return Object.assign(
            {
              ...both(`${layer}.fc1`, [inner, width], inner),
              ...both(`${layer}.fc2`, [width, inner], width),
              ...both(`${layer}.final_layer_norm`, [width], width),
            },
            ...attentions.flatMap((attention) => [
              ...["q_proj", "k_proj", "v_proj", "out_proj"].map((map) =>
                both(`${layer}.${attention}.${map}`, [width, width], width),
              ),
              both(`${layer}.${attention}_layer_norm`, [width], width),
            ]),
          );
        }),
        ...both(`model.${stack}.layer_norm`, [width], width),
      })),
    ),
  },
  copies: { "model.decoder.embed_positions.weight": "model.encoder.embed_positions.weight" },
};

/** The tensors of a model, every element another number but in copies. */
export function numbered({ tensors, copies = {} }: SmallModel): TensorSource[] {
  const all = distinct(tensors);
  const byName = new Map(all.map((tensor) => [tensor.name, tensor]));
  return all.map((tensor) => ({ ...tensor, read: (byName.get(copies[tensor.name] ?? "") ?? tensor).read }));
}

function distinct(tensors: SmallModel["tensors"]): TensorSource[] {
  let next = 0;
  return Object.entries(tensors).map(([name, shape]) => {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1)).map(() => next++);
    return { name, dtype: "F32", shape, read: () => new Uint8Array(values.buffer) };
  });
}

/** Writes a model as a Hugging Face folder. */
export async function writeModel(folder: string, model: SmallModel): Promise<string> {
  const path = join(folder, "hf");
  await mkdir(path, { recursive: true });
  await saveHuggingFaceFolder(path, { config: model.config, weights: numbered(model) });
  return path;
}
