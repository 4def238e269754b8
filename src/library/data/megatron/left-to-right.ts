/** Effects of the end of a document. */
export interface DocumentEnds {
  readonly endOfDocument: number;
  readonly resetPositions?: boolean;
  readonly resetAttention?: boolean;
  readonly maskLoss?: boolean;
}

/** The documents in a row of T tokens: positions and loss mask. */
export interface DocumentPlaces {
  /** First tokens that see nothing before them: of the row, and after each end of a document where attention is reset. */
  readonly begins: readonly number[];
  /** [T] */
  readonly positions: Int32Array;
  /** [T], 0 where a prediction does not count. */
  readonly lossMask: Float32Array;
}

/** A GPT sample's attention mask, positions and loss mask. */
export interface LeftToRight extends Pick<DocumentPlaces, "positions" | "lossMask"> {
  /** [T, T], 1 where a token is hidden from another: later ones, and other documents where attention is reset. */
  readonly hidden: Uint8Array;
}

/** Finds the documents in one row of tokens. */
export function documentPlaces(tokens: ArrayLike<number>, ends: DocumentEnds): DocumentPlaces {
  const { length } = tokens;
  const { endOfDocument, resetPositions = false, resetAttention = false, maskLoss = false } = ends;
  const documents = [0];
  for (let t = 0; t + 1 < length; t++) if (tokens[t] === endOfDocument) documents.push(t + 1);
  const positions = Int32Array.from({ length }, (_, t) => t);
  if (resetPositions)
    for (const [index, begin] of documents.entries())
      for (let t = begin; t < (documents[index + 1] ?? length); t++) positions[t] = t - begin;
  return {
    begins: resetAttention ? documents : [0],
    positions,
    lossMask: Float32Array.from({ length }, (_, t) => (maskLoss && tokens[t] === endOfDocument ? 0 : 1)),
  };
}

/** Makes masks and positions of one row of tokens like Megatron's `get_ltor_masks_and_position_ids`. */
export function leftToRight(tokens: ArrayLike<number>, ends: DocumentEnds): LeftToRight {
  const { length } = tokens;
  const { begins, positions, lossMask } = documentPlaces(tokens, ends);
  const hidden = new Uint8Array(length * length).fill(1);
  for (const [index, begin] of begins.entries())
    for (let t = begin; t < (begins[index + 1] ?? length); t++)
      hidden.fill(0, t * length + begin, t * length + t + 1);
  return { hidden, lossMask, positions };
}
