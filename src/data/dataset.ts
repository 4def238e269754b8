import { mapFile, ops, type Tensor } from "../tensor/index.ts";
import { type PreparedText, prepareText, type TextOptions } from "./prepare-text.ts";
import { textWindows, type WindowOptions } from "./text-windows.ts";
import { tensorDType } from "./token-dtype.ts";
import type { TokenizerSpec } from "./tokenizer.ts";

/** One batch: named tensors with the samples along dim 0. */
export type Batch = Readonly<Record<string, Tensor>>;

/** What a model may need to know of its data before it is built. Plain data. */
export interface DatasetFacts {
  /** Tokens below which every input lies; 0 where the data has no tokens. */
  readonly vocabSize: number;
  readonly numTrainTokens: number;
  readonly numValidationTokens: number;
  /** Reads and writes the text behind the tokens, where there is one. */
  readonly tokenizer?: TokenizerSpec;
}

/**
 * Samples by position: every method is a pure function of its arguments, so a run resumes by knowing how many samples
 * it has consumed, and any number of ranks reads the same samples.
 */
export interface Dataset {
  readonly facts: DatasetFacts;
  /** Held-out samples; positions of {@link validationBatch} are below it. */
  readonly numValidationSamples: number;
  /** @param position - samples consumed before, over all ranks and micro-batches */
  trainBatch(position: number, numSamples: number): Batch;
  /** @param position - first held-out sample */
  validationBatch(position: number, numSamples: number): Batch;
}

/**
 * Windows of a text: `inputIds` and `targets`, int64, [samples, length]; targets are the inputs shifted by one.
 * @throws {TroupeError} what `prepareText` and `textWindows` throw, before anything is trained
 */
export async function textDataset(options: TextOptions & WindowOptions): Promise<Dataset> {
  const prepared = await prepareText(options);
  return windowsOf(prepared, options);
}

function windowsOf({ tokens, tokenizer }: PreparedText, options: WindowOptions): Dataset {
  const windows = textWindows(tokens, options);
  const starts = windows.validationStarts();
  const mapped = mapFile(tokens.path, tensorDType(tokens.dtype), tokens.numTokens);
  const batch = (begins: number[]): Batch => {
    const [inputIds, targets] = ops.troupe.tokenWindows(mapped, begins, windows.length);
    return { inputIds, targets };
  };
  return {
    facts: {
      vocabSize: tokens.vocabSize,
      numTrainTokens: windows.train.end - windows.train.begin,
      numValidationTokens: windows.validation.end - windows.validation.begin,
      tokenizer,
    },
    numValidationSamples: starts.length,
    trainBatch: (position, numSamples) => batch(windows.batchStarts(position, numSamples)),
    validationBatch: (position, numSamples) => batch(starts.slice(position, position + numSamples)),
  };
}
