import { mapFile, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { type NamesOf, refuseUnknown } from "../../../errors/index.ts";
import type { Dataset, DatasetFacts, Fingerprint } from "../dataset.ts";
import { tensorDType } from "../tokenizers/token-dtype.ts";
import type { TokenizerSpec } from "../tokenizers/tokenizer.ts";
import { type PreparedText, prepareText, type TextOptions } from "./prepare-text.ts";
import { textWindows, type WindowOptions } from "./text-windows.ts";

/** Windows of a text, int64, [samples, length]. */
export type TextBatch = { readonly inputIds: Tensor; readonly targets: Tensor };

/** Facts about an encoded text. Plain data. */
export interface TextFacts extends DatasetFacts {
  readonly vocabSize: number;
  readonly numTrainTokens: number;
  readonly numValidationTokens: number;
  readonly tokenizer: TokenizerSpec;
}

/** The result of {@link textDataset}; its batches are synchronous. */
export interface TextDataset extends Dataset<TextBatch, TextFacts> {
  batch(split: string, position: number, numSamples: number): TextBatch;
  fingerprint(): Fingerprint;
}

const OPTIONS: NamesOf<TextOptions & WindowOptions> = {
  source: true,
  tokenizer: true,
  cacheDir: true,
  length: true,
  seed: true,
  order: true,
  validationFraction: true,
};

/**
 * Makes a dataset of windows of a text: `inputIds` and `targets`, int64, [samples, length]; targets are the inputs
 * shifted by one. The splits are `train`, with as many windows in an epoch as fit side by side, and `validation`.
 * @throws {TroupeError} `DATA_OPTION` for an unknown option; errors of `prepareText` and `textWindows`
 */
export async function textDataset(options: TextOptions & WindowOptions): Promise<TextDataset> {
  refuseUnknown("DATA_OPTION", "textDataset", options, OPTIONS);
  const prepared = await prepareText(options);
  return windowsOf(prepared, options);
}

function windowsOf({ tokens, tokenizer, textSha256 }: PreparedText, options: WindowOptions): TextDataset {
  const windows = textWindows(tokens, options);
  const heldOut = windows.validationStarts();
  const mapped = mapFile(tokens.path, tensorDType(tokens.dtype), tokens.numTokens);
  return {
    facts: {
      source: tokens.source,
      vocabSize: tokens.vocabSize,
      numTrainTokens: windows.train.end - windows.train.begin,
      numValidationTokens: windows.validation.end - windows.validation.begin,
      tokenizer,
    },
    splits: { train: { numSamples: windows.numTrainWindows }, validation: { numSamples: heldOut.length } },
    batch: (split, position, numSamples) => {
      const begins =
        split === "train"
          ? windows.batchStarts(position, numSamples)
          : heldOut.slice(position, position + numSamples);
      const [inputIds, targets] = ops.troupe.tokenWindows(mapped, begins, windows.length);
      return { inputIds, targets };
    },
    countTokens: ({ targets }) => targets.numel,
    // Encoding has read the text anyway.
    fingerprint: () => ({
      text: textSha256,
      length: options.length,
      order: options.order ?? "random",
      trainTokens: windows.train.end - windows.train.begin,
    }),
  };
}
