import { mapFile, ops, type Tensor } from "../tensor/index.ts";
import { type PreparedText, prepareText, type TextOptions } from "./prepare-text.ts";
import { textWindows, type WindowOptions } from "./text-windows.ts";
import { tensorDType } from "./token-dtype.ts";
import type { TokenizerSpec } from "./tokenizer.ts";

/** One batch: named tensors with the samples along dim 0. */
export type Batch = Readonly<Record<string, Tensor>>;

/** Windows of a text, int64, [samples, length]. */
export type TextBatch = { readonly inputIds: Tensor; readonly targets: Tensor };

/** What a model predicts, by name: of each sample a row, in dim 0. */
export type Rows = Readonly<Record<string, Tensor>>;

/** What predictions are worth, by name. */
export type Scores = Readonly<Record<string, number>>;

/** What a model may need to know of its data before it is built. Plain data. */
export interface DatasetFacts {
  /** What the data is called in messages to people. */
  readonly source: string;
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
export interface Dataset<B extends Batch = Batch> {
  readonly facts: DatasetFacts;
  /** Held-out samples; positions of {@link validationBatch} are below it. */
  readonly numValidationSamples: number;
  /** @param position - samples consumed before, over all ranks and micro-batches */
  trainBatch(position: number, numSamples: number): B;
  /** @param position - first held-out sample */
  validationBatch(position: number, numSamples: number): B;
  /** What of a batch counts as a token, for throughput; a run tells samples alone where it is left out. */
  countTokens?(batch: B): number;
  /**
   * Judges what the model predicts. Runs where the data is, so that it may read what no rank has.
   * @param rows - of all samples of an evaluation, in their order, whatever ranks predicted them; the callee's to read
   */
  score?(split: string, rows: Rows): Promise<Scores> | Scores;
}

/**
 * Windows of a text: `inputIds` and `targets`, int64, [samples, length]; targets are the inputs shifted by one.
 * @throws {TroupeError} what `prepareText` and `textWindows` throw, before anything is trained
 */
export async function textDataset(options: TextOptions & WindowOptions): Promise<Dataset<TextBatch>> {
  const prepared = await prepareText(options);
  return windowsOf(prepared, options);
}

function windowsOf({ tokens, tokenizer }: PreparedText, options: WindowOptions): Dataset<TextBatch> {
  const windows = textWindows(tokens, options);
  const starts = windows.validationStarts();
  const mapped = mapFile(tokens.path, tensorDType(tokens.dtype), tokens.numTokens);
  const batch = (begins: number[]): TextBatch => {
    const [inputIds, targets] = ops.troupe.tokenWindows(mapped, begins, windows.length);
    return { inputIds, targets };
  };
  return {
    facts: {
      source: tokens.source,
      vocabSize: tokens.vocabSize,
      numTrainTokens: windows.train.end - windows.train.begin,
      numValidationTokens: windows.validation.end - windows.validation.begin,
      tokenizer,
    },
    numValidationSamples: starts.length,
    trainBatch: (position, numSamples) => batch(windows.batchStarts(position, numSamples)),
    countTokens: ({ targets }) => targets.numel,
    validationBatch: (position, numSamples) => batch(starts.slice(position, position + numSamples)),
  };
}
