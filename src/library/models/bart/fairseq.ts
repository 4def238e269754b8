import { bookkeeping, type FairseqForm } from "../formats/fairseq.ts";
import { below, modules, type WeightRow, weights } from "../formats/weight-map.ts";

const same = (...names: readonly string[]): WeightRow[] =>
  modules(Object.fromEntries(names.map((name) => [name, name])));

const attention = (name: string): WeightRow[] => [
  ...below(name, name, same("q_proj", "k_proj", "v_proj", "out_proj")),
  ...same(`${name}_layer_norm`),
];

const layer: readonly WeightRow[] = [...attention("self_attn"), ...same("fc1", "fc2", "final_layer_norm")];

const stack = (name: string, inner: readonly WeightRow[]): WeightRow[] =>
  below(name, `model.${name}`, [
    ...weights({ embed_positions: "embed_positions" }),
    ...same("layernorm_embedding"),
    ...below("layers.*", "layers.*", inner),
  ]);

/** BART: FairSeq's names below `model.`, its words once for each stack and the output layer. What is added to the logits is zero. */
const form: FairseqForm = ({ vocab_size }) => ({
  rows: [
    ...weights({
      "encoder.embed_tokens": "model.shared",
      "decoder.embed_tokens": "model.shared",
      "decoder.output_projection": "model.shared",
    }),
    ...stack("encoder", layer),
    ...stack("decoder", [...layer, ...attention("encoder_attn")]),
  ],
  renamed: [[/^model\.(?=encoder|decoder)/, ""]],
  ignored: [...bookkeeping, /^classification_heads\./],
  zeros: { final_logits_bias: [1, vocab_size as number] },
});
export default form;
