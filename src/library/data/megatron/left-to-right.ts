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
