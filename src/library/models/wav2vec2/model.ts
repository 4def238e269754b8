import { configJsonOf } from "../config-fields.ts";
import { ofFamily } from "../of-family.ts";
import { type Wav2Vec2Config, wav2vec2Config } from "./config.ts";
import { PositionalConvolution } from "./features.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { SpeechForSequenceClassification } from "./speech-for-classification.ts";
import { SpeechForCTC } from "./speech-for-ctc.ts";
import { SpeechForPreTraining } from "./speech-for-pretraining.ts";

const wav2vec2: SpeechFamily<Wav2Vec2Config> = {
  prefix: "wav2vec2",
  configOf: wav2vec2Config,
  positions: (config) => new PositionalConvolution(config),
  configJson: (config, architecture) => configJsonOf(config, "wav2vec2", architecture),
};

/**
 * wav2vec 2 for speech recognition.
 * @see Baevski et al. 2020, https://arxiv.org/abs/2006.11477
 */
export class Wav2Vec2ForCTC extends ofFamily(SpeechForCTC<Wav2Vec2Config>, wav2vec2) {}

/** wav2vec 2 for pre-training on recordings alone. */
export class Wav2Vec2ForPreTraining extends ofFamily(SpeechForPreTraining, wav2vec2) {}

/** wav2vec 2 for classification of recordings. */
export class Wav2Vec2ForSequenceClassification extends ofFamily(
  SpeechForSequenceClassification<Wav2Vec2Config>,
  wav2vec2,
) {}
