import { bookkeeping, type FairseqForm } from "../formats/fairseq.ts";
import { below, modules, same, type WeightRow, weights } from "../formats/weight-map.ts";

const attention = (name: string): WeightRow[] => [
  ...below(name, name, modules(same("q_proj", "k_proj", "v_proj", "out_proj"))),
  ...modules(same(`${name}_layer_norm`)),
];

const layer: readonly WeightRow[] = [
  ...attention("self_attn"),
  ...modules(same("fc1", "fc2", "final_layer_norm")),
];

const stack = (name: string, inner: readonly WeightRow[]): WeightRow[] =>
  below(name, `model.${name}`, [
    ...weights(same("embed_positions")),
    ...modules(same("layernorm_embedding")),
    ...below("layers.*", "layers.*", inner),
  ]);

/** BART in FairSeq: names below `model.`, with an embedding for each stack and the output layer. The bias of the logits is zero. */
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
