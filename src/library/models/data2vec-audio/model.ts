import { ofFamily } from "../of-family.ts";
import type { SpeechFamily } from "../wav2vec2/speech-family.ts";
import { SpeechForSequenceClassification } from "../wav2vec2/speech-for-classification.ts";
import { SpeechForCTC } from "../wav2vec2/speech-for-ctc.ts";
import { type Data2VecAudioConfig, data2vecAudioConfig, data2vecAudioConfigJson } from "./config.ts";
import { StackedPositions } from "./positions.ts";

const data2vecAudio: SpeechFamily<Data2VecAudioConfig> = {
  prefix: "data2vec_audio",
  configOf: data2vecAudioConfig,
  positions: (config) => new StackedPositions(config),
  configJson: data2vecAudioConfigJson,
};

/**
 * data2vec's audio model for speech recognition: wav2vec 2's layers with its own positional convolutions.
 * @see Baevski et al. 2022, https://arxiv.org/abs/2202.03555
 */
export class Data2VecAudioForCTC extends ofFamily(SpeechForCTC<Data2VecAudioConfig>, data2vecAudio) {}

/** data2vec's audio model for classification of recordings. */
export class Data2VecAudioForSequenceClassification extends ofFamily(
  SpeechForSequenceClassification<Data2VecAudioConfig>,
  data2vecAudio,
) {}
