/** A model as FairSeq names it: names of modules and tensors are those below `model` of its checkpoints. */
export interface FairseqModel {
  /**
   * What stands for what: a module's or tensor's name there and with Hugging Face, `*` for the place in a list. Where several
   * stand for one of Hugging Face's they are copies of it.
   */
  readonly pairs: readonly NamePair[];
  /** Other spellings, of old releases or of models that stand in others: what is found becomes what it is followed by. */
  readonly renamed: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** Entries, renamed, that Hugging Face's model has none of. */
  readonly ignored: readonly RegExp[];
  /** Tensors that FairSeq's model has none of: zeros, by their shapes. */
  readonly zeros: Readonly<Record<string, readonly number[]>>;
}

/** The name there, and Hugging Face's. */
export type NamePair = readonly [fairseq: string, huggingFace: string];

/** What no release's model is made of. */
export const bookkeeping: readonly RegExp[] = [/(^|\.)version$/, /\._float_tensor$/, /^_ema\b/];

/** The same pairs below a name on each side. */
export function pairsBelow(fairseq: string, huggingFace: string, pairs: readonly NamePair[]): NamePair[] {
  return pairs.map(([there, here]) => [`${fairseq}.${there}`, `${huggingFace}.${here}`]);
}
