import { mapFile, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { type NamesOf, TroupeError, unknownNames } from "../../../errors/index.ts";
import type { Dataset, DatasetFacts, Fingerprint } from "../dataset.ts";
import { tensorDType } from "../tokenizers/token-dtype.ts";
import type { TokenizerSpec } from "../tokenizers/tokenizer.ts";
import { type PreparedText, prepareText, type TextOptions } from "./prepare-text.ts";
import { textWindows, type WindowOptions } from "./text-windows.ts";

/** Windows of a text, int64, [samples, length]. */
export type TextBatch = { readonly inputIds: Tensor; readonly targets: Tensor };

/** What is known of a text once it is encoded. Plain data. */
export interface TextFacts extends DatasetFacts {
  readonly vocabSize: number;
  readonly numTrainTokens: number;
  readonly numValidationTokens: number;
  readonly tokenizer: TokenizerSpec;
}

/** {@link textDataset}: its batches are at hand at once. */
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
 * Windows of a text: `inputIds` and `targets`, int64, [samples, length]; targets are the inputs shifted by one. Splits
 * `train`, of which an epoch is as many windows as lie side by side in it, and `validation`.
 * @throws {TroupeError} `DATA_OPTION` for what no option is called; what `prepareText` and `textWindows` throw, before anything is trained
 */
export async function textDataset(options: TextOptions & WindowOptions): Promise<TextDataset> {
  const unknown = unknownNames(options, OPTIONS);
  if (unknown !== undefined) throw new TroupeError("DATA_OPTION", { where: "textDataset", ...unknown });
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
    splits: {
      train: { numSamples: windows.numTrainWindows },
      validation: { numSamples: heldOut.length },
    },
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
