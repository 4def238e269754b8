import { bookkeeping, type FairseqModel, type NamePair, pairsBelow } from "../formats/fairseq.ts";

const same = (name: string): NamePair => [name, name];

const layer: readonly NamePair[] = [
  ...["q_proj", "k_proj", "v_proj", "out_proj"].map((map) => same(`self_attn.${map}`)),
  ...["self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"].map(same),
];

/** OPT as metaseq, FairSeq's sibling, names it: its words once more for the output layer. */
export function fairseqOpt(): FairseqModel {
  const words = ["embed_tokens.weight", "output_projection.weight"];
  return {
    pairs: pairsBelow("decoder", "model.decoder", [
      ...words.map((name): NamePair => [name, "embed_tokens.weight"]),
      same("embed_positions.weight"),
      ["project_in_dim.weight", "project_in.weight"],
      ["project_out_dim.weight", "project_out.weight"],
      ["layer_norm", "final_layer_norm"],
      ...pairsBelow("layers.*", "layers.*", layer),
    ]),
    renamed: [[/^model\.(?=decoder)/, ""]],
    ignored: bookkeeping,
    zeros: {},
  };
}
