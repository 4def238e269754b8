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
 * data2vec's model of speech that writes down what is said: wav2vec 2's layers, with convolutions of positions of its own.
 * @see Baevski et al. 2022, https://arxiv.org/abs/2202.03555
 */
export class Data2VecAudioForCTC extends ofFamily(SpeechForCTC<Data2VecAudioConfig>, data2vecAudio) {}

/** The same that says of a whole recording what it is. */
export class Data2VecAudioForSequenceClassification extends ofFamily(
  SpeechForSequenceClassification<Data2VecAudioConfig>,
  data2vecAudio,
) {}
