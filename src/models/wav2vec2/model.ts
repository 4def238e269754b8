import { configJsonOf } from "../config-fields.ts";
import { type Wav2Vec2Config, wav2vec2Config } from "./config.ts";
import { PositionalConvolution } from "./features.ts";
import { SpeechForCTC } from "./speech-for-ctc.ts";

/**
 * wav2vec 2 that writes down what is said.
 * @see Baevski et al. 2020, https://arxiv.org/abs/2006.11477
 */
export class Wav2Vec2ForCTC extends SpeechForCTC<Wav2Vec2Config> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>> = {}) {
    super(
      {
        prefix: "wav2vec2",
        configOf: wav2vec2Config,
        positions: (config) => new PositionalConvolution(config),
        configJson: (config) => configJsonOf(config, "wav2vec2", "Wav2Vec2ForCTC"),
      },
      fields,
    );
  }
}
