/** Complete pieces (lines, records), one after the other, to write together. */
export interface Batch {
  readonly bytes: Uint8Array;
  /** End of each piece in `bytes`, rising; the last is its length. */
  readonly ends: readonly number[];
}

/** Result of writing a batch. */
export interface Outcome {
  /** Number of pieces, from the first, that are written completely. */
  readonly numPieces: number;
  /** Why the others are not. */
  readonly error?: NodeJS.ErrnoException;
}

/** An output for pieces. A part of a piece that could not be written is removed or made invalid: no reader takes it for one. */
export interface Outlet {
  /** Its name for people: a path, "standard output". */
  readonly name: string;
  /** Writes a batch, one at a time; never rejects. Waits for a slow reader. */
  write(batch: Batch): Promise<Outcome>;
  /** Writes without waiting, also at the exit of the process; undefined where that might block the thread. */
  writeNow(batch: Batch): Outcome | undefined;
  /** From now on gives up a reader that has read nothing for so many milliseconds. */
  hurry?(patienceMs: number): void;
  /** Accepts no more and closes what it has opened. */
  close(): Promise<void>;
}

/** Number of pieces of a batch that are complete in its first `numBytes`. */
export function numComplete({ ends }: Batch, numBytes: number): number {
  const after = ends.findIndex((end) => end > numBytes);
  return after < 0 ? ends.length : after;
}

/** The rest of a batch without its first pieces; undefined where there is none. */
export function restOf({ bytes, ends }: Batch, numPieces: number): Batch | undefined {
  if (numPieces === ends.length) return undefined;
  const begin = ends[numPieces - 1] ?? 0;
  return { bytes: bytes.subarray(begin), ends: ends.slice(numPieces).map((end) => end - begin) };
}
