import type { WeightRow } from "./weight-map.ts";

/** A model as FairSeq names it: names of tensors are those below `model` of its checkpoints. */
export interface FairseqModel {
  /** `*` stands for the place in a list. Tensors of FairSeq's with the same `here` are copies. */
  readonly rows: readonly WeightRow[];
  /** Other spellings, of old releases or of models that stand in others: what is found becomes what it is followed by. */
  readonly renamed: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** Entries, renamed, that Hugging Face's model has none of. */
  readonly ignored: readonly RegExp[];
  /** Tensors that FairSeq's model has none of: zeros, by their shapes. */
  readonly zeros: Readonly<Record<string, readonly number[]>>;
}

/**
 * How FairSeq names the model that a Hugging Face config.json describes.
 * @param architecture - the first that the file names, or empty
 */
export type FairseqForm = (config: Readonly<Record<string, unknown>>, architecture: string) => FairseqModel;

/** Entries of every release that are no weights. */
export const bookkeeping: readonly RegExp[] = [/(^|\.)version$/, /\._float_tensor$/, /^_ema\b/];
