import { TroupeError } from "../../../errors/index.ts";
import { ownValue } from "../../../errors/untrusted/index.ts";
import { fairseqBart } from "../../models/bart/fairseq.ts";
import type { FairseqModel } from "../../models/formats/fairseq.ts";
import { fairseqOpt } from "../../models/opt/fairseq.ts";
import { type FairseqSpeechConfig, fairseqSpeech } from "../../models/wav2vec2/fairseq.ts";
import { type FairseqEncoderConfig, fairseqTextEncoder } from "../../models/roberta/fairseq.ts";

export type { FairseqModel } from "../../models/formats/fairseq.ts";

type Fields = Readonly<Record<string, unknown>>;

const families: Readonly<Record<string, (config: Fields, architecture: string) => FairseqModel>> = {
  roberta: (config, architecture) =>
    fairseqTextEncoder(config as unknown as FairseqEncoderConfig, "roberta", isClassifier(architecture)),
  "data2vec-text": (config, architecture) =>
    fairseqTextEncoder(
      config as unknown as FairseqEncoderConfig,
      "data2vec_text",
      isClassifier(architecture),
    ),
  bart: (config) => fairseqBart(config as unknown as { readonly vocab_size: number }),
  opt: fairseqOpt,
  wav2vec2: (config, architecture) => fairseqSpeech(config as unknown as FairseqSpeechConfig, architecture),
  "data2vec-audio": (config, architecture) =>
    fairseqSpeech(config as unknown as FairseqSpeechConfig, architecture),
};

/**
 * How FairSeq names the model that a Hugging Face config.json describes.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, and for output layers of their own
 */
export function fairseqModel(config: Fields): FairseqModel {
  const family = ownValue(families, config.model_type);
  if (family === undefined)
    throw refusal("model_type", `one of ${Object.keys(families).join(", ")}`, config.model_type);
  if (config.tie_word_embeddings === false)
    throw refusal("tie_word_embeddings", "true, as in FairSeq", config.tie_word_embeddings);
  const [architecture] = Array.isArray(config.architectures) ? (config.architectures as unknown[]) : [];
  return family(config, typeof architecture === "string" ? architecture : "");
}

function isClassifier(architecture: string): boolean {
  return architecture.endsWith("ForSequenceClassification");
}

function refusal(field: string, expected: string, got: unknown): TroupeError {
  return new TroupeError(
    "MODEL_CONFIG",
    {
      where: "fairseq",
      expected: `${field} to be ${expected}`,
      got: JSON.stringify(got) ?? "none",
      hint: "give the model's Hugging Face config.json",
    },
    { fields: { field, got } },
  );
}
