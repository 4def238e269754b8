import { closeSync, ftruncateSync, openSync } from "node:fs";
import { TroupeError } from "../../errors/index.ts";

/** Maps a whole file into this thread, to be read and written. */
export type MapFile = (path: string) => ArrayBuffer;

/** A piece of the memory that all processes of a system share: plain data. */
export interface MemoryPlace {
  readonly path: string;
  readonly byteOffset: number;
}

/** What its owner has mapped lies here. */
export interface MappedMemory {
  readonly place: MemoryPlace;
  readonly bytes: Uint8Array;
}

// Never touched pages take no memory. Enough for 130,000 links.
const fileSizeBytes = 1 << 24;
const alignmentBytes = 128;

/**
 * The memory in which status boards and credit counters of actors lie that live in other processes: one file, which outlives a process that
 * is killed. Places are not reused: a thread may still write to one after everybody else has forgotten it.
 */
export class SharedMemory {
  readonly #path: string;
  readonly #buffer: ArrayBuffer;
  #usedBytes = 0;

  /** @param path - of the file to be made */
  constructor(path: string, mapFile: MapFile) {
    const descriptor = openSync(path, "wx", 0o600);
    ftruncateSync(descriptor, fileSizeBytes);
    closeSync(descriptor);
    this.#path = path;
    this.#buffer = mapFile(path);
  }

  /**
   * Zeroed bytes that start on a cache line of their own.
   * @throws {TroupeError} `PROCESS_MEMORY` when all have been given out
   */
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
  return new TroupeError(
    "PROCESS_MEMORY",
    {
      where: "spawn",
      expected: "room for the counters of one more link between processes",
      got: `${path} full`,
      hint: "start a new system",
    },
    { fields: { path } },
  );
}
