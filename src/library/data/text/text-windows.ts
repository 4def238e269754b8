import { optionErrors, TroupeError } from "../../../errors/index.ts";
import { permute } from "../permutation.ts";
import { philox4x32, wordsOf } from "../philox.ts";
import type { TokenFile } from "./token-file.ts";

/** The windows of a text to train on, and their order. */
export interface WindowOptions {
  /** Tokens that a window predicts; it reads one more, since targets are shifted by one. */
  readonly length: number;
  /** Chooses the order; the same seed gives the same windows at the same position. */
  readonly seed: number;
  /**
   * `"random"` (default): starts are drawn with replacement, as in nanoGPT, and any token may begin a window.
   * `"epoch"`: adjacent windows, each exactly once per epoch, in a different order every epoch.
   */
  readonly order?: "random" | "epoch";
  /** Share of the text, at its end, that is held out. Default: 0.1; 0 holds nothing out. */
  readonly validationFraction?: number;
}

/** Positions in a token file, for the kernel `token_windows(tokens, starts, length)`. */
export interface TextWindows {
  readonly length: number;
  /** First token, and the token after the last, of the part that is trained on. */
  readonly train: { readonly begin: number; readonly end: number };
  readonly validation: { readonly begin: number; readonly end: number };
  /** Adjacent windows in the training part: one epoch of order `"epoch"`. */
  readonly numTrainWindows: number;
  readonly numValidationWindows: number;

  /**
   * Starts of the windows of the samples `position`, `position + 1`, … A pure function of the options and of
   * `position`: a run resumes by knowing how many samples it has consumed, whatever the number of ranks.
   * @param position - samples consumed before, over all ranks and micro-batches
   */
  batchStarts(position: number, numSamples: number): number[];

  /**
   * Starts of the held-out windows: always the same, adjacent, or spread evenly over the held-out part when fewer are
   * requested than it has.
   */
  validationStarts(maxWindows?: number): number[];
}

/**
 * Cuts a text into windows for training and validation, by position.
 * @throws {TroupeError} `DATA_OPTION` for an option out of range, `DATA_TOO_SHORT` when a part that should have windows
 * is too short for one
 */
export function textWindows(
  tokens: Pick<TokenFile, "numTokens" | "source">,
  options: WindowOptions,
): TextWindows {
  const { length, seed, order = "random", validationFraction = 0.1 } = options;
  checkOptions(length, seed, order, validationFraction);
  const split = Math.floor(tokens.numTokens * (1 - validationFraction));
  const train = { begin: 0, end: split };
  const validation = { begin: split, end: tokens.numTokens };
  const numTrainWindows = numWindows(train, length);
  const numValidationWindows = numWindows(validation, length);
  if (numTrainWindows === 0) throw tooShort("training", train, tokens.source, options);
  if (numValidationWindows === 0 && validationFraction > 0)
    throw tooShort("held-out", validation, tokens.source, options);
  const startOf = (sample: number): number => {
    if (order === "random") return train.begin + uniform(sample, train.end - train.begin - length, seed);
    const epoch = Math.floor(sample / numTrainWindows);
    return train.begin + length * permute(sample % numTrainWindows, numTrainWindows, seed, epoch);
  };
  return {
    length,
    train,
    validation,
    numTrainWindows,
    numValidationWindows,
    batchStarts: (position, numSamples) =>
      Array.from({ length: numSamples }, (_, index) => startOf(position + index)),
    validationStarts: (maxWindows = numValidationWindows) => {
      const count = Math.min(maxWindows, numValidationWindows);
      const window = (index: number) => Math.floor((index * numValidationWindows) / count);
      return Array.from({ length: count }, (_, index) => validation.begin + length * window(index));
    },
  };
}

/** Number of adjacent windows; neighbours share one token, the target of the one and the first input of the other. */
function numWindows(part: { begin: number; end: number }, length: number): number {
  return Math.max(0, Math.floor((part.end - part.begin - 1) / length));
}

/** An integer in [0, size), a function of `index` and `seed` with 53 random bits. */
function uniform(index: number, size: number, seed: number): number {
  const [low, high] = wordsOf(index);
  const [a, b] = philox4x32([low, high, 0, 0], wordsOf(seed));
  // The largest fraction is 1 - 2^-53, and its product with a size below 2^53 never rounds up to the size.
  return Math.floor(((a * 2 ** 21 + (b >>> 11)) / 2 ** 53) * size);
}

function checkOptions(length: number, seed: number, order: string, validationFraction: number): void {
  const refuse = optionErrors("DATA_OPTION", "data");
  if (!Number.isSafeInteger(length) || length < 1)
    throw refuse("length", "a whole number of tokens above 0", length);
  if (!Number.isSafeInteger(seed)) throw refuse("seed", "a whole number", seed);
  if (order !== "random" && order !== "epoch") throw refuse("order", '"random" or "epoch"', order);
  if (!(validationFraction >= 0 && validationFraction < 1))
    throw refuse("validationFraction", "at least 0 and below 1", validationFraction);
}

function tooShort(
  name: string,
  part: { begin: number; end: number },
  source: string,
  { length, validationFraction = 0.1 }: WindowOptions,
): TroupeError {
  const numTokens = part.end - part.begin;
  return new TroupeError("DATA_TOO_SHORT", {
    where: "data",
    expected: `at least ${length + 1} tokens in the ${name} part of ${source}`,
    got: `${numTokens}`,
    hint: `give more text, a shorter window than ${length}, or another validationFraction than ${validationFraction}`,
    fields: { part: name, numTokens, length, validationFraction },
  });
}
