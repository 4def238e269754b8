import { configOfFile } from "../config-fields.ts";
import type { NeoXForm } from "../formats/neox.ts";
import { below, biases, modules, same, weights } from "../formats/weight-map.ts";
import { gptNeoXConfig } from "./config.ts";

/** Layers of GPT-NeoX's pipeline before the stack: the embedding, and a transposition. */
const NUM_BEFORE = 2;

/** GPT-NeoX in the names of its own checkpoints. */
const form: NeoXForm = (given) => {
  const {
    num_hidden_layers: numLayers,
    tie_word_embeddings: isTied,
    attention_bias: hasBias,
  } = gptNeoXConfig(configOfFile(given));
  const norms = ["input_layernorm", "post_attention_layernorm"];
  const attention = ["attention.query_key_value", "attention.dense"];
  const feedForward = ["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"];
  const layer = [
    ...weights(same(...norms, ...attention, ...feedForward)),
    ...biases(same(...norms, ...(hasBias ? attention : []), ...feedForward)),
  ];
  const layers = Array.from({ length: numLayers }, (_, index) =>
    below(`${NUM_BEFORE + index}`, `gpt_neox.layers.${index}`, layer),
  );
  const behind = NUM_BEFORE + numLayers + 1; // after another transposition
  return {
    rows: [
      ...weights({ "0.word_embeddings": "gpt_neox.embed_in" }),
      ...layers.flat(),
      ...modules({ [`${behind}.norm`]: "gpt_neox.final_layer_norm" }),
      ...(isTied ? [] : weights({ [`${behind + 1}.final_linear`]: "lm_head" })),
    ],
    ignored: /\.(rotary_emb\.inv_freq|attention\.(bias|masked_bias))$/,
  };
};
export default form;
