import type { Writable } from "node:stream";
import { reportError } from "../error-report.ts";
import type { OutputFailed, OutputResumed } from "../kinds/delivery.ts";
import { behind, DescriptorOutlet, isBehind, isFinal, StreamOutlet } from "./descriptor-outlet.ts";
import { type Batch, type Outlet, restOf } from "./outlet.ts";

/** Bytes held for a target that is slow, or takes nothing for now. */
const maxHeldBytes = 1 << 26;
/** Much at once is written at once, whenever that is. */
const promptBytes = 1 << 18;
/** After a failure it is tried again, each time twice as late. */
const firstRetryMs = 200;
const maxRetryMs = 5000;
/** How long the end waits for a reader that reads nothing. */
const patienceMs = 60_000;
/** How far the files of a run may be behind it: nobody sees less, and a killed run loses no more. */
export const fileWriteMs = 200;

/** How a {@link BoundedWriter} writes. */
export interface BoundedWriterOptions {
  /** What comes within so many milliseconds goes out together: a write costs as much as making many lines. 0: at once */
  readonly everyMs?: number;
  /** Whether what nobody has to wait for is written within the call. false */
  readonly prompt?: boolean;
  /** Bytes held at most: 64 MiB. */
  readonly maxHeldBytes?: number;
  /** How long {@link BoundedWriter.close} waits for a reader that reads nothing, in milliseconds: 60,000. */
  readonly patienceMs?: number;
  /** A piece that says how many are missing, where readers are to be told: it comes before the next that is taken. */
  readonly notice?: (numLost: number) => string | Uint8Array;
}

/** Is told when an output takes nothing any more, and once what it lacks for good is known. */
export type TellTrouble = (trouble: OutputFailed | OutputResumed) => void;

/**
 * Writes whole pieces in order without ever waiting. What the target does not take yet, because its reader is slow or its
 * disk is full, is held, up to 64 MiB, and tried again; beyond that what comes is left out and counted. A target whose
 * reader has gone takes no more. What is held when the process ends by itself is written then; one that is killed leaves out
 * what came in its last `everyMs`.
 */
export class BoundedWriter {
  readonly #outlet: Outlet;
  readonly #options: BoundedWriterOptions;
  /** Texts that follow each other are one. */
  #held: (string | Uint8Array)[] = [];
  #ends: number[] = [];
  #numHeldBytes = 0;
  /** Taken out of what is held, and being written or to be tried again. */
  #batch: Batch | undefined;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retryMs = firstRetryMs;
  #trouble: NodeJS.ErrnoException | undefined;
  /** In this trouble. */
  #numLost = 0;
  /** That readers were not told of. */
  #numUntold = 0;
  #isOver = false;
  #tell: TellTrouble = () => {};

  /**
   * @param target - an outlet, a stream, or a file descriptor: then even a pipe that nobody reads holds up no one, as
   * writing to `process.stdout` would
   */
  constructor(target: Outlet | Writable | number, options: BoundedWriterOptions = {}) {
    this.#outlet =
      typeof target === "number"
        ? new DescriptorOutlet(target)
        : "writeNow" in target
          ? target
          : new StreamOutlet(target);
    this.#options = options;
  }

  /** Has trouble told from now on: once when it begins, and once when it is over or the writer closed. */
  onTrouble(tell: TellTrouble): void {
    this.#tell = tell;
  }

  /** Writes a piece: a text, or bytes that nobody changes afterwards. One that cannot be taken is counted as lost. */
  write(piece: string | Uint8Array): void {
    const { maxHeldBytes: most = maxHeldBytes, everyMs = 0, prompt = false } = this.#options;
    const hasRoom = this.#numHeldBytes + sizeOf(piece) <= most && !isBehind(this.#trouble);
    if (this.#isOver || !hasRoom) {
      this.#lose(1);
      if (this.#trouble === undefined) this.#fail(behind());
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
   * Writes what is held, tries once more where that failed, and lets the target go. Waits for a reader that is slow, and for
   * a minute for one that reads nothing. What was lost is told then, where it was not before.
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

  /** Writes what waits for its time; for the end of the process, when there is no other. */
  writeLast(): void {
    // Behind what is being written it could come before it.
    if (this.#writing === undefined) this.#writeNow();
  }

  /** Whether something is being written, or waits to be tried again. */
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

  /** Has readers told of what is missing before what follows. */
  #holdNotice(): void {
    const { notice } = this.#options;
    if (this.#numUntold > 0 && notice !== undefined) this.#hold(notice(this.#numUntold));
    this.#numUntold = 0;
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

  /** Writes until nothing is held, or it fails. */
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
    // A reader that is behind is waited for elsewhere.
    if (isBehind(error)) this.#start();
  }

  /** What is to be written next; undefined where nothing is. */
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
    // One that was full takes no more until half is out: else it would be in trouble and out of it with every piece.
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
    this.#numUntold += numPieces;
  }

  /** Takes no more: what is held is lost. */
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

  /** Waits until nothing is held, or it fails twice: the first time may have been before what kept it back was over. */
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

/** Writers that hold something until its time comes. */
const waiting = new Set<BoundedWriter>();
let hasListener = false;

/** Their timers keep no process from ending: it writes what they hold. */
function writeAtExit(writer: BoundedWriter): void {
  waiting.add(writer);
  if (hasListener) return;
  hasListener = true;
  process.on("exit", () => {
    for (const each of waiting) each.writeLast();
  });
}
