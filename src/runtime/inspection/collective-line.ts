import type { CollectiveStatus } from "../protocol/actor-status.ts";

/** Size of an actor's collective line, in bytes; the same as in `native/comm/status_slot.h`. */
export const collectiveLineBytes = 80;

const word = { version: 0, waiting: 1 } as const;
const real = { sequence: 1, sinceMs: 2 } as const;
const operationAt = 24;
const groupAt = 40;

/** An actor's last collective, on its status board. One thread writes, native code too while it waits; any other reads. */
export class CollectiveLine {
  /** Memory that native code writes to. */
  readonly memory: Uint8Array;
  readonly #now: () => number;
  readonly #words: Int32Array;
  readonly #reals: Float64Array;
  readonly #encoder = new TextEncoder();

  /** @param memory - `collectiveLineBytes` bytes, zeroed, aligned to 8 */
  constructor(now: () => number, memory: Uint8Array) {
    this.memory = memory;
    this.#now = now;
    this.#words = new Int32Array(memory.buffer, memory.byteOffset, 2);
    this.#reals = new Float64Array(memory.buffer, memory.byteOffset, 3);
  }

  /** Writes that this actor has joined a collective; names are cut at 16 and 40 bytes. */
  enter(name: string, group: string, sequence: number): void {
    Atomics.add(this.#words, word.version, 1);
    this.#words[word.waiting] = 0;
    this.#reals[real.sequence] = sequence;
    this.#reals[real.sinceMs] = this.#now();
    this.#write(name, operationAt, groupAt);
    this.#write(group, groupAt, collectiveLineBytes);
    Atomics.add(this.#words, word.version, 1);
  }

  /** Reads the line, from any thread; undefined before the first collective. */
  read(): CollectiveStatus | undefined {
    for (let attempt = 0; ; attempt++) {
      const version = Atomics.load(this.#words, word.version);
      if (version === 0) return undefined;
      const status = this.#readOnce();
      const isConsistent = version % 2 === 0 && version === Atomics.load(this.#words, word.version);
      // A thread killed in mid-write leaves an odd version forever: then the torn reading is all there is.
      if (isConsistent || attempt === 100) return status;
    }
  }

  #readOnce(): CollectiveStatus {
    return {
      name: this.#text(operationAt, groupAt),
      group: this.#text(groupAt, collectiveLineBytes),
      sequence: this.#reals[real.sequence] as number,
      isWaiting: this.#words[word.waiting] === 1,
      sinceMs: this.#reals[real.sinceMs] as number,
    };
  }

  #write(text: string, begin: number, end: number): void {
    const field = this.memory.subarray(begin, end);
    const { written } = this.#encoder.encodeInto(text, field);
    field.fill(0, written);
  }

  #text(begin: number, end: number): string {
    const field = this.memory.subarray(begin, end);
    const length = field.indexOf(0);
    return Buffer.from(field.slice(0, length < 0 ? field.length : length)).toString();
  }
}

/** Returns a copy of a collective line of another process, whose clock is `laterMs` behind this one's. */
export function shiftedLine(line: Uint8Array, laterMs: number): Uint8Array {
  const copy = line.slice();
  const reals = new Float64Array(copy.buffer, 0, 3);
  reals[real.sinceMs] = (reals[real.sinceMs] as number) + laterMs;
  return copy;
}
