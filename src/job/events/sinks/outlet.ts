/** Whole pieces (lines, records) one after the other, to be written at once. */
export interface Batch {
  readonly bytes: Uint8Array;
  /** Where each piece ends in `bytes`, rising; the last is its length. */
  readonly ends: readonly number[];
}

/** What came of writing a batch. */
export interface Outcome {
  /** How many pieces, from the first, are out whole. */
  readonly numPieces: number;
  /** What kept the others back. */
  readonly error?: NodeJS.ErrnoException;
}

/**
 * Where pieces go. What is half out when an error comes is taken back or made unreadable, so that no reader ever takes a
 * half piece and what follows it for one.
 */
export interface Outlet {
  /** What people call it: a path, "standard output". */
  readonly name: string;
  /** Writes a batch, one at a time; never rejects. A reader that is slow is waited for. */
  write(batch: Batch): Promise<Outcome>;
  /** The same without waiting for anybody; undefined where that might hold up the thread. For the end of a process too. */
  writeNow(batch: Batch): Outcome | undefined;
  /** From now on a reader that has read nothing for so many milliseconds is given up. */
  hurry?(patienceMs: number): void;
  /** Takes no more and lets go of what was opened for it. */
  close(): Promise<void>;
}

/** How many pieces the first `numBytes` of a batch hold whole. */
export function numWhole({ ends }: Batch, numBytes: number): number {
  const after = ends.findIndex((end) => end > numBytes);
  return after < 0 ? ends.length : after;
}

/** What of a batch is left when its first pieces are out; undefined where nothing is. */
export function restOf({ bytes, ends }: Batch, numPieces: number): Batch | undefined {
  if (numPieces === ends.length) return undefined;
  const begin = ends[numPieces - 1] ?? 0;
  return { bytes: bytes.subarray(begin), ends: ends.slice(numPieces).map((end) => end - begin) };
}
