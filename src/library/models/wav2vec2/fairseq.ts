import { bookkeeping, type FairseqForm, type FairseqModel } from "../formats/fairseq.ts";
import { below, modules, same, tensors, type WeightRow } from "../formats/weight-map.ts";

const layer: readonly WeightRow[] = [
  ...below("self_attn", "attention", modules(same("q_proj", "k_proj", "v_proj", "out_proj"))),
  ...modules({
    self_attn_layer_norm: "layer_norm",
    fc1: "feed_forward.intermediate_dense",
    fc2: "feed_forward.output_dense",
    final_layer_norm: "final_layer_norm",
  }),
];

/** A positional convolution with weight normalization. */
const positions: readonly WeightRow[] = tensors({
  "pos_conv.0.weight_g": "pos_conv_embed.conv.parametrizations.weight.original0",
  "pos_conv.0.weight_v": "pos_conv_embed.conv.parametrizations.weight.original1",
  "pos_conv.0.bias": "pos_conv_embed.conv.bias",
});

/** Parts of pre-training outside the stack. */
const preTraining: readonly WeightRow[] = [
  ...tensors({ "quantizer.vars": "quantizer.codevectors" }),
  ...modules({
    "quantizer.weight_proj": "quantizer.weight_proj",
    project_q: "project_q",
    final_proj: "project_hid",
  }),
];

/** wav2vec 2; parts for pre-training only are kept if the architecture is `Wav2Vec2ForPreTraining`. */
const form: FairseqForm = ({ feat_extract_norm }, architecture) =>
  fairseqSpeech({
    prefix: "wav2vec2",
    positions,
    isNormed: feat_extract_norm === "layer",
    preTraining: architecture === "Wav2Vec2ForPreTraining" ? preTraining : [],
  });
export default form;

/**
 * A speech model: pre-trained, or nested in a model tuned for speech recognition.
 * @param prefix - of Hugging Face's names
 * @param isNormed - whether every convolution of the samples has a norm
 */
export function fairseqSpeech({
  prefix,
  positions: ofPositions,
  isNormed,
  preTraining: ofPreTraining = [],
}: {
  readonly prefix: string;
  readonly positions: readonly WeightRow[];
  readonly isNormed: boolean;
  readonly preTraining?: readonly WeightRow[];
}): FairseqModel {
  const isPreTraining = ofPreTraining.length > 0;
  const stack = "w2v_encoder.w2v_model";
  const [conv, norm] = ["conv_layers.*.0", isNormed ? "conv_layers.*.2.1" : "conv_layers.*.2"];
  return {
    rows: [
      ...below(stack, prefix, [
        ...below(
          "feature_extractor",
          "feature_extractor",
          modules({ [conv]: "conv_layers.*.conv", [norm]: "conv_layers.*.layer_norm" }),
        ),
        ...modules({
          layer_norm: "feature_projection.layer_norm",
          post_extract_proj: "feature_projection.projection",
        }),
        ...tensors({ mask_emb: "masked_spec_embed" }),
        ...below("encoder", "encoder", [
          ...ofPositions,
          ...below("layers.*", "layers.*", layer),
          ...modules({ layer_norm: "layer_norm" }),
        ]),
      ]),
      ...modules({ "w2v_encoder.proj": "lm_head" }),
      ...ofPreTraining.map((row) => ({ ...row, there: `${stack}.${row.there}` })),
    ],
    renamed: [[/^(?!w2v_encoder\.)(w2v_model\.)?/, "w2v_encoder.w2v_model."]],
    // Parts for pre-training only, and the averaged teacher.
    ignored: [
      ...bookkeeping,
      isPreTraining
        ? /^w2v_encoder\.w2v_model\.(target_glu|_ema)\b/
        : /^w2v_encoder\.w2v_model\.(quantizer|project_q|final_proj|target_glu|_ema)\b/,
    ],
    zeros: {},
  };
}
