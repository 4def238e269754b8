import { type ConfigOf, configJsonOf, depth, readConfig, size } from "../config-fields.ts";
import { checkSpeech, NUM_CONVOLUTIONS, type SpeechConfig, speechFields } from "../wav2vec2/config.ts";
import type { NamedState } from "../weights.ts";

const data2vecAudioFields = {
  ...speechFields,
  /** Kernel size of each positional convolution. */
  conv_pos_kernel_size: size(19),
  /** Number of positional convolutions in sequence. */
  num_conv_pos_embeddings: depth(5),
} as const;

/**
 * A data2vec audio model, by the field names of Hugging Face's config.json. All convolutions have norms; the halves of layers end
 * in one.
 */
export type Data2VecAudioConfig = ConfigOf<typeof data2vecAudioFields> & SpeechConfig;

/**
 * Completes given fields with those of data2vec's base model of speech, as transformers has them, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function data2vecAudioConfig(given: Readonly<Record<string, unknown>> = {}): Data2VecAudioConfig {
  const where = "Data2VecAudioConfig";
  const alsoRead = [NUM_CONVOLUTIONS, "feat_extract_norm", "do_stable_layer_norm"]; // the last two have fixed values
  const rules = { where, modelType: "data2vec-audio", alsoRead };
  const config = readConfig(rules, data2vecAudioFields, given);
  checkSpeech(where, config, given[NUM_CONVOLUTIONS]);
  return { ...config, feat_extract_norm: "layer", do_stable_layer_norm: false };
}

/** The config.json for its files. */
export function data2vecAudioConfigJson(
  config: Data2VecAudioConfig,
  architecture: string,
): NamedState["configJson"] {
  const { feat_extract_norm: _, do_stable_layer_norm: __, ...own } = config;
  return configJsonOf(own, "data2vec-audio", architecture);
}
