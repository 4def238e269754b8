const sequenceWord = 0;
const sleepingWord = 1;
const urgentWord = 2;

/**
 * The wake-up signal of one thread, in shared memory. Senders ring it after posting; a thread that receives without its event
 * loop sleeps on it. Ringing a thread that is awake costs two atomic operations.
 */
export class Signal {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(16)) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer);
  }

  /** Signals that something was posted; `urgent` asks the receiver to look before its next message. */
  ring(urgent: boolean): void {
    if (urgent) Atomics.add(this.#words, urgentWord, 1);
    Atomics.add(this.#words, sequenceWord, 1);
    if (Atomics.load(this.#words, sleepingWord) !== 0) Atomics.notify(this.#words, sequenceWord);
  }

  /** Number of rings. Read it before polling the ports, then pass it to {@link sleep}. */
  get sequence(): number {
    return Atomics.load(this.#words, sequenceWord);
  }

  /** Number of urgent rings. */
  get urgentSequence(): number {
    return Atomics.load(this.#words, urgentWord);
  }

  /** Blocks this thread until it is rung, at most `timeoutMs`; returns at once if rung since `seen` was read. */
  sleep(seen: number, timeoutMs: number): void {
    // A sender either sees this flag and notifies, or rang before it, and then the word is no longer `seen`.
    Atomics.store(this.#words, sleepingWord, 1);
    Atomics.wait(this.#words, sequenceWord, seen, timeoutMs);
    Atomics.store(this.#words, sleepingWord, 0);
  }
}
