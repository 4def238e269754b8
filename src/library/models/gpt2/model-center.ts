import { attention, type ModelCenterModel, type ModelCenterTensor, modules } from "../formats/model-center.ts";

/** Behind the layers of a decoder: a tensor unless the words stand for it. */
function outputLayer(isTied: boolean, { bias = false } = {}): ModelCenterTensor[] {
  return isTied ? [] : modules([["output_projection", "lm_head"]], { bias });
}

/** What no head of Hugging Face's decoders is, and copies of the words. */
const ofDecoder = {
  ignored: [/^cls_projection\./],
  ignoredHere: [/\.attn\.(bias|masked_bias|embed_positions)$/, /rotary_emb\.inv_freq$/],
};

function ignoring(isTied: boolean): Pick<ModelCenterModel, "ignored" | "ignoredHere"> {
  return isTied ? { ...ofDecoder, ignoredHere: [...ofDecoder.ignoredHere, /^lm_head\.weight$/] } : ofDecoder;
}

function eachLayer(count: number, tensorsOf: (index: number) => ModelCenterTensor[]): ModelCenterTensor[] {
  return Array.from({ length: count }, (_, index) => tensorsOf(index)).flat();
}

/** GPT-2: one matrix, the other way round, is three maps there. */
export function modelCenterGpt2({
  n_layer,
  tie_word_embeddings: isTied,
}: {
  readonly n_layer: number;
  readonly tie_word_embeddings: boolean;
}): ModelCenterModel {
  const turned = (tensors: readonly ModelCenterTensor[]) =>
    tensors.map((tensor) => ({ ...tensor, transposed: true }));
  return {
    tensors: [
      ...modules(
        [
          ["input_embedding", "transformer.wte"],
          ["position_embedding", "transformer.wpe"],
        ],
        { bias: false },
      ),
      ...eachLayer(n_layer, (index) => {
        const [there, here] = [`encoder.layers.${index}`, `transformer.h.${index}`];
        const fused = (["project_q", "project_k", "project_v"] as const).flatMap((map, third) =>
          modules([[`${there}.self_att.self_attention.${map}`, `${here}.attn.c_attn`]]).map((tensor) => ({
            ...tensor,
            third: third as 0 | 1 | 2,
          })),
        );
        return [
          ...modules([
            [`${there}.self_att.layernorm_before_attention`, `${here}.ln_1`],
            [`${there}.ffn.layernorm_before_ffn`, `${here}.ln_2`],
          ]),
          ...turned([
            ...fused,
            ...modules([
              [`${there}.self_att.self_attention.attention_out`, `${here}.attn.c_proj`],
              [`${there}.ffn.ffn.w_in.w`, `${here}.mlp.c_fc`],
              [`${there}.ffn.ffn.w_out`, `${here}.mlp.c_proj`],
            ]),
          ]),
        ];
      }),
      ...modules([["encoder.output_layernorm", "transformer.ln_f"]]),
      ...outputLayer(isTied),
    ],
    ...ignoring(isTied),
  };
}

/** GPT-J: both halves of a layer have a norm there, of the same values; its model uses the attention's and the feed-forward's. */
export function modelCenterGptJ({
  n_layer,
  tie_word_embeddings: isTied,
}: {
  readonly n_layer: number;
  readonly tie_word_embeddings: boolean;
}): ModelCenterModel {
  return {
    tensors: [
      ...modules([["input_embedding", "transformer.wte"]], { bias: false }),
      ...eachLayer(n_layer, (index) => {
        const [there, here] = [`encoder.layers.${index}`, `transformer.h.${index}`];
        const maps = ["q_proj", "k_proj", "v_proj", "out_proj"].map((map) => `${here}.attn.${map}`);
        return [
          ...modules([[`${there}.self_att.layernorm_before_attention`, `${here}.ln_1`]]),
          ...modules([[`${there}.ffn.layernorm_before_ffn`, `${here}.ln_1`]]).map((tensor) => ({
            ...tensor,
            copy: "equal" as const,
          })),
          ...attention(`${there}.self_att`, maps as [string, string, string, string], { bias: false }),
          ...modules([
            [`${there}.ffn.ffn.w_in.w`, `${here}.mlp.fc_in`],
            [`${there}.ffn.ffn.w_out`, `${here}.mlp.fc_out`],
          ]),
        ];
      }),
      ...modules([["encoder.output_layernorm", "transformer.ln_f"]]),
      ...outputLayer(isTied, { bias: true }),
    ],
    ...ignoring(isTied),
  };
}

/** OPT, with norms in front of the halves of a layer. */
export function modelCenterOpt({
  num_hidden_layers,
}: {
  readonly num_hidden_layers: number;
}): ModelCenterModel {
  return {
    tensors: [
      ...modules(
        [
          ["input_embedding", "model.decoder.embed_tokens"],
          ["position_embedding", "model.decoder.embed_positions"],
        ],
        { bias: false },
      ),
      ...eachLayer(num_hidden_layers, (index) => {
        const [there, here] = [`decoder.layers.${index}`, `model.decoder.layers.${index}`];
        const maps = ["q_proj", "k_proj", "v_proj", "out_proj"].map((map) => `${here}.self_attn.${map}`);
        return [
          ...attention(`${there}.self_att`, maps as [string, string, string, string]),
          ...modules([
            [`${there}.self_att.layernorm_before_attention`, `${here}.self_attn_layer_norm`],
            [`${there}.ffn.layernorm_before_ffn`, `${here}.final_layer_norm`],
            [`${there}.ffn.ffn.w_in.w`, `${here}.fc1`],
            [`${there}.ffn.ffn.w_out`, `${here}.fc2`],
          ]),
        ];
      }),
      ...modules([["decoder.output_layernorm", "model.decoder.final_layer_norm"]]),
    ],
    ...ignoring(true),
  };
}

/** LLaMA. */
export function modelCenterLlama({
  num_hidden_layers,
  tie_word_embeddings: isTied,
  attention_bias,
  mlp_bias,
}: {
  readonly num_hidden_layers: number;
  readonly tie_word_embeddings: boolean;
  readonly attention_bias: boolean;
  readonly mlp_bias: boolean;
}): ModelCenterModel {
  return {
    tensors: [
      ...modules([["input_embedding", "model.embed_tokens"]], { bias: false }),
      ...eachLayer(num_hidden_layers, (index) => {
        const [there, here] = [`encoder.layers.${index}`, `model.layers.${index}`];
        const maps = ["q_proj", "k_proj", "v_proj", "o_proj"].map((map) => `${here}.self_attn.${map}`);
        return [
          ...modules(
            [
              [`${there}.self_att.layernorm_before_attention`, `${here}.input_layernorm`],
              [`${there}.ffn.layernorm_before_ffn`, `${here}.post_attention_layernorm`],
            ],
            { bias: false },
          ),
          ...attention(`${there}.self_att`, maps as [string, string, string, string], {
            bias: attention_bias,
          }),
          ...modules(
            [
              [`${there}.ffn.ffn.w_in.w_0`, `${here}.mlp.gate_proj`],
              [`${there}.ffn.ffn.w_in.w_1`, `${here}.mlp.up_proj`],
              [`${there}.ffn.ffn.w_out`, `${here}.mlp.down_proj`],
            ],
            { bias: mlp_bias },
          ),
        ];
      }),
      ...modules([["encoder.output_layernorm", "model.norm"]], { bias: false }),
      ...outputLayer(isTied),
    ],
    ...ignoring(isTied),
  };
}
