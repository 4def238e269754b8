import { TroupeError } from "../../../errors/index.ts";

/** The error for an invalid `tokenizer.json`. */
export function refusal(expected: string, got: string, cause?: unknown): TroupeError {
  return new TroupeError("TOKENIZER_INVALID", {
    where: "tokenizer",
    expected,
    got,
    hint: "give a tokenizer.json that Hugging Face's tokenizers wrote, or vocab.json with merges.txt",
    cause,
  });
}
