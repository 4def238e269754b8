import { bookkeeping, type FairseqModel, type NamePair, pairsBelow } from "../formats/fairseq.ts";

/** What the names of a speech model depend on, by the field names of its config.json. */
export interface FairseqSpeechConfig {
  readonly model_type: "wav2vec2" | "data2vec-audio";
  readonly feat_extract_norm?: string;
}

const layer: readonly NamePair[] = [
  ...["q_proj", "k_proj", "v_proj", "out_proj"].map(
    (map): NamePair => [`self_attn.${map}`, `attention.${map}`],
  ),
  ["self_attn_layer_norm", "layer_norm"],
  ["fc1", "feed_forward.intermediate_dense"],
  ["fc2", "feed_forward.output_dense"],
  ["final_layer_norm", "final_layer_norm"],
];

/** How positions are convolved: one weight-normed convolution, or plain ones in a row. */
const positions: Readonly<Record<FairseqSpeechConfig["model_type"], readonly NamePair[]>> = {
  wav2vec2: [
    ["pos_conv.0.weight_g", "pos_conv_embed.conv.parametrizations.weight.original0"],
    ["pos_conv.0.weight_v", "pos_conv_embed.conv.parametrizations.weight.original1"],
    ["pos_conv.0.bias", "pos_conv_embed.conv.bias"],
  ],
  "data2vec-audio": [["pos_conv.*.0", "pos_conv_embed.layers.*.conv"]],
};

/** What wav2vec 2's pre-training has beside the stack. */
const preTraining: readonly NamePair[] = [
  ["quantizer.vars", "quantizer.codevectors"],
  ["quantizer.weight_proj", "quantizer.weight_proj"],
  ["project_q", "project_q"],
  ["final_proj", "project_hid"],
];

/**
 * wav2vec 2, or data2vec's model of speech: pretrained alone, or below the model that was tuned to write what is said.
 * @param architecture - of Hugging Face's names: where it is `Wav2Vec2ForPreTraining`, what pretraining alone needs is kept
 */
export function fairseqSpeech(
  { model_type, feat_extract_norm = "group" }: FairseqSpeechConfig,
  architecture: string,
): FairseqModel {
  const isData2Vec = model_type === "data2vec-audio";
  const isPreTraining = architecture === "Wav2Vec2ForPreTraining";
  const prefix = isData2Vec ? "data2vec_audio" : "wav2vec2";
  const norms: NamePair =
    isData2Vec || feat_extract_norm === "layer"
      ? ["feature_extractor.conv_layers.*.2.1", "feature_extractor.conv_layers.*.layer_norm"]
      : ["feature_extractor.conv_layers.*.2", "feature_extractor.conv_layers.*.layer_norm"];
  return {
    pairs: [
      ...pairsBelow("w2v_encoder.w2v_model", prefix, [
        ["feature_extractor.conv_layers.*.0", "feature_extractor.conv_layers.*.conv"],
        norms,
        ["layer_norm", "feature_projection.layer_norm"],
        ["post_extract_proj", "feature_projection.projection"],
        ["mask_emb", "masked_spec_embed"],
        ...pairsBelow("encoder", "encoder", [
          ...positions[model_type],
          ...pairsBelow("layers.*", "layers.*", layer),
          ["layer_norm", "layer_norm"],
        ]),
      ]),
      ["w2v_encoder.proj", "lm_head"],
      ...(isPreTraining
        ? preTraining.map(([there, here]): NamePair => [`w2v_encoder.w2v_model.${there}`, here])
        : []),
    ],
    renamed: [[/^(?!w2v_encoder\.)(w2v_model\.)?/, "w2v_encoder.w2v_model."]],
    // What pretraining alone needs, and the averaged teacher.
    ignored: [
      ...bookkeeping,
      isPreTraining
        ? /^w2v_encoder\.w2v_model\.(target_glu|_ema)\b/
        : /^w2v_encoder\.w2v_model\.(quantizer|project_q|final_proj|target_glu|_ema)\b/,
    ],
    zeros: {},
  };
}
