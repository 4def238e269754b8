import { bookkeeping, type FairseqForm } from "../formats/fairseq.ts";
import { below, modules, same, weights } from "../formats/weight-map.ts";

/** OPT in metaseq, FairSeq's sibling: the output layer has a copy of the embedding. */
const form: FairseqForm = () => ({
  rows: below("decoder", "model.decoder", [
    ...weights({
      embed_tokens: "embed_tokens",
      output_projection: "embed_tokens",
      embed_positions: "embed_positions",
      project_in_dim: "project_in",
      project_out_dim: "project_out",
    }),
    ...modules({ layer_norm: "final_layer_norm" }),
    ...below("layers.*", "layers.*", [
      ...below("self_attn", "self_attn", modules(same("q_proj", "k_proj", "v_proj", "out_proj"))),
      ...modules(same("self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")),
    ]),
  ]),
  renamed: [[/^model\.(?=decoder)/, ""]],
  ignored: bookkeeping,
  zeros: {},
});
export default form;
