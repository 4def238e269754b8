import { setTimeout as sleep } from "node:timers/promises";
import { reportError, type TellTrouble } from "../../job/events/index.ts";

/** An answer that says that a request is wrong: repeating it would not help. */
export class RequestRefused extends Error {}

/** A request to a tracker. */
export interface TrackerRequest {
  /** Figures, files or states that it carries. */
  readonly numEntries: number;
  /**
   * Sends it.
   * @param isRepeat - whether it was sent before, without an answer: it may have arrived
   * @throws {RequestRefused} if the tracker refuses it; any other error: it is sent again
   */
  send(isRepeat: boolean): Promise<void>;
}

/** A failed request is sent again after this long, then each time after twice as long. */
const [FIRST_RETRY_MS, MOST_RETRY_MS] = [250, 5_000];

/** The most entries held for a tracker that does not answer; some hours of a run. */
const MOST_HELD = 1 << 20;

/**
 * Sends requests one after the other, each until it is answered, without holding up a run. Requests beyond 2^20 entries, and those that
 * are refused, are lost and counted; trouble is reported when it begins and when it is over.
 */
export class RequestQueue {
  readonly #output: string;
  readonly #ended = new AbortController();
  #waiting: TrackerRequest[] = [];
  #numHeld = 0;
  #numLost = 0;
  #error: Error | undefined;
  #sending: Promise<void> | undefined;
  #tell: TellTrouble = () => {};

  readonly #keptIn: string | undefined;

  /**
   * @param output - name of the tracker in messages
   * @param keptIn - the folder that keeps what is not sent at the end, for a later process. Default: that is lost
   */
  constructor(output: string, keptIn?: string) {
    this.#output = output;
    this.#keptIn = keptIn;
  }

  onTrouble(tell: TellTrouble): void {
    this.#tell = tell;
  }

  /** Whether there is room for entries; those without room are lost. @param numSoon - entries that are added before them */
  admits(numEntries: number, numSoon = 0): boolean {
    const hasRoom = this.#numHeld + numSoon + numEntries <= MOST_HELD;
    if (!hasRoom) this.#numLost += numEntries;
    return hasRoom;
  }

  add(request: TrackerRequest): void {
    if (!this.admits(request.numEntries)) return;
    this.#waiting.push(request);
    this.#numHeld += request.numEntries;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Waits for an answer to all requests, for at most `patienceMs`; reports those that were lost. */
  async close(patienceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#ended.abort(), patienceMs);
    await this.#sending;
    clearTimeout(timer);
    const isKept = this.#keptIn !== undefined && this.#numHeld > 0;
    const numLost = this.#numLost + (isKept ? 0 : this.#numHeld);
    if (numLost === 0 && !isKept) return;
    const { message } = this.#error ?? new Error("more came than it took");
    const error = new Error(
      isKept
        ? `${message}; ${this.#numHeld} figures wait in ${this.#keptIn} until the run is resumed`
        : message,
    );
    this.#tell({ kind: "output.failed", output: this.#output, error: reportError(error), numLost });
  }

  async #sendAll(): Promise<void> {
    for (let request = this.#waiting[0]; request !== undefined; request = this.#waiting[0]) {
      if (!(await this.#send(request))) return;
      this.#waiting.shift();
      this.#numHeld -= request.numEntries;
    }
  }

  /** @returns whether the request is done with; false if the queue has ended before */
  async #send(request: TrackerRequest): Promise<boolean> {
    let waitMs = FIRST_RETRY_MS;
    for (let isRepeat = false; ; isRepeat = true) {
      try {
        await request.send(isRepeat);
        this.#succeeded();
        return true;
      } catch (cause) {
        const error = cause as Error;
        this.#failed(error);
        if (error instanceof RequestRefused) {
          this.#numLost += request.numEntries;
          return true;
        }
      }
      if (this.#ended.signal.aborted) return false;
      await sleep(waitMs, undefined, { signal: this.#ended.signal }).catch(() => {});
      waitMs = Math.min(2 * waitMs, MOST_RETRY_MS);
    }
  }

  #failed(error: Error): void {
    if (this.#error === undefined)
      this.#tell({ kind: "output.failed", output: this.#output, error: reportError(error) });
    this.#error = error;
  }

  #succeeded(): void {
    if (this.#error === undefined) return;
    this.#tell({ kind: "output.resumed", output: this.#output, numLost: this.#numLost });
    this.#error = undefined;
    this.#numLost = 0;
  }
}
