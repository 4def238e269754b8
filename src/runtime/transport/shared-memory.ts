import { closeSync, ftruncateSync, openSync } from "node:fs";
import { TroupeError } from "../../errors/index.ts";

/** Maps a complete file into this thread, for reading and writing. */
export type MapFile = (path: string) => ArrayBuffer;

/** A place in memory that all processes of a system share. Plain data. */
export interface MemoryPlace {
  readonly path: string;
  readonly byteOffset: number;
}

/** Shared memory, mapped by its owner. */
export interface MappedMemory {
  readonly place: MemoryPlace;
  readonly bytes: Uint8Array;
}

// Enough for 130,000 links. Pages that are never touched take no memory.
const fileSizeBytes = 1 << 24;
const alignmentBytes = 128;

/**
 * Memory for the status boards and credit counters of actors in other processes: one file, which outlives a killed process.
 * Places are not reused, because a thread may still write to one after it was released.
 */
export class SharedMemory {
  readonly #path: string;
  readonly #buffer: ArrayBuffer;
  #usedBytes = 0;

  /** @param path - path of the file to create */
  constructor(path: string, mapFile: MapFile) {
    const descriptor = openSync(path, "wx", 0o600);
    ftruncateSync(descriptor, fileSizeBytes);
    closeSync(descriptor);
    this.#path = path;
    this.#buffer = mapFile(path);
  }

  /** Allocates zeroed bytes on a cache line of their own. @throws {TroupeError} `PROCESS_MEMORY` if the file is full */
  allocate(sizeBytes: number): MappedMemory {
    const byteOffset = this.#usedBytes;
    this.#usedBytes += Math.ceil(sizeBytes / alignmentBytes) * alignmentBytes;
    if (this.#usedBytes > fileSizeBytes) throw allGiven(this.#path);
    return {
      place: { path: this.#path, byteOffset },
      bytes: new Uint8Array(this.#buffer, byteOffset, sizeBytes),
    };
  }
}

function allGiven(path: string): TroupeError {
  return new TroupeError("PROCESS_MEMORY", {
    where: "spawn",
    expected: "room for the counters of one more link between processes",
    got: `${path} full`,
    hint: "start a new system",
    fields: { path },
  });
}
