/** What the end of a document means. */
export interface DocumentEnds {
  readonly endOfDocument: number;
  readonly resetPositions?: boolean;
  readonly resetAttention?: boolean;
  readonly maskLoss?: boolean;
}

/** What documents of one row see of each other, and where their tokens stand. T tokens. */
export interface DocumentPlaces {
  /** First tokens of what sees nothing before it: of the row, and behind each end of a document where attention is reset. */
  readonly begins: readonly number[];
  /** [T] */
  readonly positions: Int32Array;
  /** [T], 0 where a prediction does not count. */
  readonly lossMask: Float32Array;
}

/** What of a GPT sample is seen from where, and what counts. */
export interface LeftToRight extends Pick<DocumentPlaces, "positions" | "lossMask"> {
  /** [T, T], 1 where a token is hidden from another: what comes later, and other documents where they are told apart. */
  readonly hidden: Uint8Array;
}

/** Where the documents of one row of tokens lie. */
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

/** Masks and positions of one row of tokens, as Megatron's `get_ltor_masks_and_position_ids` makes them. */
export function leftToRight(tokens: ArrayLike<number>, ends: DocumentEnds): LeftToRight {
  const { length } = tokens;
  const { begins, positions, lossMask } = documentPlaces(tokens, ends);
  const hidden = new Uint8Array(length * length).fill(1);
  for (const [index, begin] of begins.entries())
    for (let t = begin; t < (begins[index + 1] ?? length); t++)
      hidden.fill(0, t * length + begin, t * length + t + 1);
  return { hidden, lossMask, positions };
}
