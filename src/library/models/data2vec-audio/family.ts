import { defineFamily } from "../family.ts";
import { data2vecAudioConfig } from "./config.ts";
import { Data2VecAudioForCTC, Data2VecAudioForSequenceClassification } from "./model.ts";

defineFamily({
  modelType: "data2vec-audio",
  config: data2vecAudioConfig,
  heads: {
    speech_recognition: Data2VecAudioForCTC,
    audio_classification: Data2VecAudioForSequenceClassification,
  },
  architectures: { Data2VecAudioForSequenceClassification: "audio_classification" },
  formats: { fairseq: () => import("./fairseq.ts") },
});
