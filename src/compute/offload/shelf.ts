import { ScratchFile } from "../tensor/index.ts";

const PLACES_IN_FILE = 16;

/** Places of one size, in scratch files that are added as they are needed. */
export class Shelf {
  readonly placeBytes: number;
  readonly #directory: string;
  readonly #files: ScratchFile[] = [];
  readonly #free: number[] = [];

  /** @param placeBytes - whole pages */
  constructor(directory: string, placeBytes: number) {
    this.#directory = directory;
    this.placeBytes = placeBytes;
  }

  /** @throws {TroupeError} `SCRATCH_FILE` where the disk has no more room */
  take(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const begin = this.#files.length * PLACES_IN_FILE;
    this.#files.push(new ScratchFile(this.#directory, PLACES_IN_FILE * this.placeBytes));
    for (let place = begin + PLACES_IN_FILE - 1; place > begin; place--) this.#free.push(place);
    return begin;
  }

  give(place: number): void {
    this.#free.push(place);
  }

  /** The file that a place is in, and where in it. */
  at(place: number): { readonly file: ScratchFile; readonly offsetBytes: number } {
    const file = this.#files[Math.floor(place / PLACES_IN_FILE)] as ScratchFile;
    return { file, offsetBytes: (place % PLACES_IN_FILE) * this.placeBytes };
  }

  dispose(): void {
    for (const file of this.#files.splice(0)) file[Symbol.dispose]();
  }
}
