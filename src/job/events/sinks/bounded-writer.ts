import type { Writable } from "node:stream";
import { reportError } from "../error-report.ts";
import type { OutputFailed, OutputResumed } from "../kinds/delivery.ts";
import { behind, DescriptorOutlet, isBehind, isFinal, StreamOutlet } from "./descriptor-outlet.ts";
import { type Batch, type Outlet, restOf } from "./outlet.ts";

/** The most bytes held for a slow or failing output. */
const maxHeldBytes = 1 << 26;
/** This much is written at once, without waiting for the timer. */
const promptBytes = 1 << 18;
/** A failed write is tried again after this long, then each time after twice as long. */
const firstRetryMs = 200;
const maxRetryMs = 5000;
/** How long closing waits for a reader that reads nothing. */
const patienceMs = 60_000;
/** How far files may be behind their run: no reader notices, and a killed run loses no more. */
export const fileWriteMs = 200;

/** Options of a {@link BoundedWriter}. */
export interface BoundedWriterOptions {
  /** Pieces within this time are written together: a write costs as much as formatting many lines. Default: 0, at once. */
  readonly everyMs?: number;
  /** Whether pieces are written within the call where that cannot block. Default: false. */
  readonly prompt?: boolean;
  /** The most bytes held. Default: 64 MiB. */
  readonly maxHeldBytes?: number;
  /** How long {@link BoundedWriter.close} waits for a reader that reads nothing, in milliseconds. Default: 60,000. */
  readonly patienceMs?: number;
  /** Makes a piece that tells readers how many pieces are missing; written before the next one. */
  readonly notice?: (numLost: number) => string | Uint8Array;
}

/** Called when an output fails, and once the number of lost pieces is known. */
export type TellTrouble = (trouble: OutputFailed | OutputResumed) => void;

/**
 * Writes complete pieces in order without blocking. Pieces that the output does not accept yet, because its reader is slow or its
 * disk is full, are held, up to 64 MiB, and tried again; beyond that new ones are dropped and counted. An output whose reader has
 * gone accepts no more. Held pieces are written when the process exits; a killed one loses those of its last `everyMs`.
 */
export class BoundedWriter {
  readonly #outlet: Outlet;
  readonly #options: BoundedWriterOptions;
  /** Consecutive texts are joined. */
  #held: (string | Uint8Array)[] = [];
  #ends: number[] = [];
  #numHeldBytes = 0;
  /** Taken from the held pieces, and being written or to be tried again. */
  #batch: Batch | undefined;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retryMs = firstRetryMs;
  #trouble: NodeJS.ErrnoException | undefined;
  /** Pieces lost since the output failed. */
  #numLost = 0;
  /** Lost pieces that readers have no notice of yet. */
  #numUnreported = 0;
  #isOver = false;
  #tell: TellTrouble = () => {};

  /** @param target - an outlet, a stream, or a descriptor, which never blocks even for a pipe that nobody reads */
  constructor(target: Outlet | Writable | number, options: BoundedWriterOptions) {
    this.#outlet =
      typeof target === "number"
        ? new DescriptorOutlet(target)
        : "writeNow" in target
          ? target
          : new StreamOutlet(target);
    this.#options = options;
  }

  /** Sets a callback for failures: called when the output fails, and when it works again or the writer is closed. */
  onTrouble(tell: TellTrouble): void {
    this.#tell = tell;
  }

  /** Writes a piece: a text, or bytes that must not change afterwards. A piece that cannot be held is counted as lost. */
  write(piece: string | Uint8Array): void {
    const { maxHeldBytes: most = maxHeldBytes, everyMs = 0, prompt = false } = this.#options;
    const hasRoom = this.#numHeldBytes + sizeOf(piece) <= most && !isBehind(this.#trouble);
    if (this.#isOver || !hasRoom) {
      this.#lose(1);
      if (this.#trouble === undefined) this.#fail(behind());
      // A piece that is too large by itself leaves no write that would recover.
      if (!this.#isOver && this.#numHeldBytes === 0) this.#recover();
      return;
    }
    this.#holdNotice();
    this.#hold(piece);
    if (prompt && !this.#isBusy) this.#writeNow();
    if (this.#isBusy || this.#numHeldBytes === 0) return;
    if (everyMs === 0 || this.#numHeldBytes >= promptBytes) this.#start();
    else this.#later(everyMs);
  }

  /**
   * Writes held pieces, tries once more after a failure, and closes the output. Waits for a slow reader, up to a minute
   * for one that reads nothing. Reports losses that were not reported before.
   */
  async close(): Promise<void> {
    this.#outlet.hurry?.(this.#options.patienceMs ?? patienceMs);
    await this.#drain();
    if (this.#trouble === undefined) this.#holdNotice();
    await this.#drain();
    this.#end();
    await this.#outlet.close();
    const { name: output } = this.#outlet;
    const { error, numLost } = { error: this.#trouble, numLost: this.#numLost };
    if (error === undefined) return;
    this.#trouble = undefined;
    this.#tell({ kind: "output.failed", output, error: reportError(error), numLost });
  }

  /** Writes pieces that wait for the timer; for the exit of the process, when there is no later turn. */
  writeLast(): void {
    // It must not overtake a write in progress.
    if (this.#writing === undefined) this.#writeNow();
  }

  /** Whether a write is in progress or will be tried again. */
  get #isBusy(): boolean {
    return this.#writing !== undefined || this.#batch !== undefined;
  }

  #hold(piece: string | Uint8Array): void {
    const last = this.#held.length - 1;
    if (typeof piece === "string" && typeof this.#held[last] === "string") this.#held[last] += piece;
    else this.#held.push(piece);
    const sizeBytes = sizeOf(piece);
    this.#numHeldBytes += sizeBytes;
    this.#ends.push((this.#ends.at(-1) ?? 0) + sizeBytes);
  }

  /** Adds the notice about missing pieces before the next one. */
  #holdNotice(): void {
    const { notice } = this.#options;
    if (this.#numUnreported > 0 && notice !== undefined) this.#hold(notice(this.#numUnreported));
    this.#numUnreported = 0;
  }

  #later(afterMs: number): void {
    writeAtExit(this);
    this.#timer ??= setTimeout(() => this.#start(), afterMs).unref();
  }

  #start(): void {
    this.#writing ??= this.#writeHeld().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Writes until nothing is held, or a write fails. */
  async #writeHeld(): Promise<void> {
    for (let batch = this.#take(); batch !== undefined; batch = this.#take()) {
      const { numPieces, error } = await this.#outlet.write(batch);
      this.#account(batch, numPieces, error);
      if (error !== undefined) return;
    }
  }

  #writeNow(): void {
    const batch = this.#take();
    const outcome = batch && this.#outlet.writeNow(batch);
    if (batch === undefined || outcome === undefined) return;
    const { numPieces, error } = outcome;
    this.#account(batch, numPieces, isBehind(error) ? undefined : error);
    // A slow reader is waited for elsewhere.
    if (isBehind(error)) this.#start();
  }

  /** The next pieces to write; undefined where there are none. */
  #take(): Batch | undefined {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    waiting.delete(this);
    if (this.#batch !== undefined || this.#ends.length === 0) return this.#batch;
    const parts = this.#held.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
    const bytes = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
    this.#batch = { bytes, ends: this.#ends };
    this.#held = [];
    this.#ends = [];
    return this.#batch;
  }

  #account(batch: Batch, numPieces: number, error: NodeJS.ErrnoException | undefined): void {
    this.#batch = restOf(batch, numPieces);
    this.#numHeldBytes -= batch.bytes.length - (this.#batch?.bytes.length ?? 0);
    if (error !== undefined) {
      this.#fail(error);
      return;
    }
    const { maxHeldBytes: most = maxHeldBytes } = this.#options;
    // A full queue accepts nothing until half of it is written: else each piece would report a failure and a recovery.
    const isOver = !isBehind(this.#trouble) || this.#numHeldBytes <= most / 2;
    if (this.#trouble !== undefined && isOver) this.#recover();
  }

  #fail(error: NodeJS.ErrnoException): void {
    const isNews = this.#trouble === undefined;
    this.#trouble = error;
    if (isNews) this.#tell({ kind: "output.failed", output: this.#outlet.name, error: reportError(error) });
    if (isFinal(error)) this.#end();
    else if (!isBehind(error)) {
      this.#later(this.#retryMs);
      this.#retryMs = Math.min(maxRetryMs, 2 * this.#retryMs);
    }
  }

  #recover(): void {
    const numLost = this.#numLost;
    this.#trouble = undefined;
    this.#numLost = 0;
    this.#retryMs = firstRetryMs;
    this.#tell({ kind: "output.resumed", output: this.#outlet.name, numLost });
  }

  #lose(numPieces: number): void {
    this.#numLost += numPieces;
    this.#numUnreported += numPieces;
  }

  /** Accepts no more: held pieces are lost. */
  #end(): void {
    this.#isOver = true;
    this.#lose((this.#batch?.ends.length ?? 0) + this.#ends.length);
    clearTimeout(this.#timer);
    waiting.delete(this);
    this.#batch = undefined;
    this.#held = [];
    this.#ends = [];
    this.#numHeldBytes = 0;
  }

  /** Waits until nothing is held, or a write fails twice: the first may have failed before its obstacle was gone. */
  async #drain(): Promise<void> {
    for (let attempt = 0; attempt < 2 && this.#numHeldBytes > 0 && !this.#isOver; attempt++) {
      this.#start();
      await this.#writing;
      if (isBehind(this.#trouble)) return;
    }
  }
}

function sizeOf(piece: string | Uint8Array): number {
  return typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
}

/** Writers with pieces that wait for a timer. */
const waiting = new Set<BoundedWriter>();
let hasListener = false;

/** Timers do not keep the process alive: at its exit the writers' pieces are written. */
function writeAtExit(writer: BoundedWriter): void {
  waiting.add(writer);
  if (hasListener) return;
  hasListener = true;
  process.on("exit", () => {
    for (const each of waiting) each.writeLast();
  });
}
