import type { WeightRow } from "./weight-map.ts";

/** A model in FairSeq's names: those below `model` in its checkpoints. */
export interface FairseqModel {
  /** `*` stands for a list index. FairSeq's tensors with the same `here` are copies. */
  readonly rows: readonly WeightRow[];
  /** Other spellings, of old releases or of models nested in others: each pattern with its replacement. */
  readonly renamed: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** Renamed entries that Hugging Face's model lacks. */
  readonly ignored: readonly RegExp[];
  /** Tensors that FairSeq's model lacks, by shape: zeros. */
  readonly zeros: Readonly<Record<string, readonly number[]>>;
}

/**
 * Maps the model of a Hugging Face config.json to FairSeq's names.
 * @param architecture - the first in config.json, or empty
 */
export type FairseqForm = (config: Readonly<Record<string, unknown>>, architecture: string) => FairseqModel;

/** Entries of any release that are not weights. */
export const bookkeeping: readonly RegExp[] = [/(^|\.)version$/, /\._float_tensor$/, /^_ema\b/];
