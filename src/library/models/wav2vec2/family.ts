import { defineFamily } from "../family.ts";
import { wav2vec2Config } from "./config.ts";
import { Wav2Vec2ForCTC, Wav2Vec2ForPreTraining, Wav2Vec2ForSequenceClassification } from "./model.ts";

defineFamily({
  modelType: "wav2vec2",
  config: wav2vec2Config,
  heads: {
    speech_pretraining: Wav2Vec2ForPreTraining,
    speech_recognition: Wav2Vec2ForCTC,
    audio_classification: Wav2Vec2ForSequenceClassification,
  },
  architectures: {
    Wav2Vec2ForPreTraining: "speech_pretraining",
    Wav2Vec2ForSequenceClassification: "audio_classification",
  },
  formats: { fairseq: () => import("./fairseq.ts") },
});
