/** What of a GPT sample is seen from where, and what counts. */
export interface LeftToRight {
  /** [T, T], 1 where a token is hidden from another: what comes later, and other documents where they are told apart. */
  readonly hidden: Uint8Array;
  /** [T], 0 where a prediction does not count. */
  readonly lossMask: Float32Array;
  /** [T] */
  readonly positions: Int32Array;
}

/** What the end of a document means. */
export interface DocumentEnds {
  readonly endOfDocument: number;
  readonly resetPositions?: boolean;
  readonly resetAttention?: boolean;
  readonly maskLoss?: boolean;
}

/** Masks and positions of one row of tokens, as Megatron's `get_ltor_masks_and_position_ids` makes them. */
export function leftToRight(tokens: ArrayLike<number>, ends: DocumentEnds): LeftToRight {
  const length = tokens.length;
  const { endOfDocument, resetPositions = false, resetAttention = false, maskLoss = false } = ends;
  const lossMask = Float32Array.from({ length }, (_, t) => (maskLoss && tokens[t] === endOfDocument ? 0 : 1));
  const positions = Int32Array.from({ length }, (_, t) => t);
  const hidden = new Uint8Array(length * length);
  for (let t = 0; t < length; t++) hidden.fill(1, t * length + t + 1, (t + 1) * length);
  let begin = 0;
  for (let t = 0; t < length; t++) {
    if (tokens[t] !== endOfDocument) continue;
    for (let later = t + 1; later < length; later++) {
      if (resetAttention) hidden.fill(1, later * length, later * length + t + 1);
      if (resetPositions) positions[later] = (positions[later] as number) - (t + 1 - begin);
    }
    begin = t + 1;
  }
  return { hidden, lossMask, positions };
}
