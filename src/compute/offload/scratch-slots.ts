import { ScratchFile } from "../tensor/index.ts";

const SLOTS_IN_FILE = 16;

/** Slots of one size in scratch files, which are added as needed. */
export class ScratchSlots {
  readonly slotBytes: number;
  readonly #directory: string;
  readonly #files: ScratchFile[] = [];
  readonly #free: number[] = [];

  /** @param slotBytes - size of a slot, in bytes; complete pages */
  constructor(directory: string, slotBytes: number) {
    this.#directory = directory;
    this.slotBytes = slotBytes;
  }

  /** Takes a free slot. @throws {TroupeError} `SCRATCH_FILE` if the disk is full */
  take(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const begin = this.#files.length * SLOTS_IN_FILE;
    this.#files.push(new ScratchFile(this.#directory, SLOTS_IN_FILE * this.slotBytes));
    for (let slot = begin + SLOTS_IN_FILE - 1; slot > begin; slot--) this.#free.push(slot);
    return begin;
  }

  give(slot: number): void {
    this.#free.push(slot);
  }

  /** Returns the file of a slot and its offset there. */
  at(slot: number): { readonly file: ScratchFile; readonly offsetBytes: number } {
    const file = this.#files[Math.floor(slot / SLOTS_IN_FILE)] as ScratchFile;
    return { file, offsetBytes: (slot % SLOTS_IN_FILE) * this.slotBytes };
  }

  dispose(): void {
    for (const file of this.#files.splice(0)) file[Symbol.dispose]();
  }
}
