import { close, constants, fstatSync, openSync, write, writeSync } from "node:fs";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isMainThread } from "node:worker_threads";
import { type Batch, numComplete, type Outcome, type Outlet } from "./outlet.ts";

/** How often a write to a slow reader is tried again. */
const retryMs = 10;
const standard: Readonly<Record<number, string>> = { 1: "standard output", 2: "standard error" };
const nothing = new Uint8Array();
const lineEnd = Buffer.from("\n");
const writeBytes = promisify(write);

/** Options of a {@link DescriptorOutlet}. */
export interface DescriptorOptions {
  /** Its name for people. */
  readonly name?: string;
  /** Whether closing the outlet closes the descriptor. */
  readonly owns?: boolean;
  /** Bytes that are written first. */
  readonly head?: Uint8Array | undefined;
}

/**
 * Writes to a file descriptor. Opens a pipe or a terminal a second time without blocking: a blocking write would occupy
 * one of the few threads that all files of the process share.
 */
export class DescriptorOutlet implements Outlet {
  readonly name: string;
  readonly #descriptor: number;
  /** Descriptors to close with the outlet. */
  readonly #owned: number[] = [];
  readonly #waitsForNobody: boolean;
  /** Bytes to write before the next piece. */
  #lead: Uint8Array;
  #patienceMs = Number.POSITIVE_INFINITY;

  constructor(descriptor: number, options: DescriptorOptions = {}) {
    const { name = standard[descriptor] ?? `descriptor ${descriptor}`, owns = false, head } = options;
    this.name = name;
    this.#lead = head ?? nothing;
    const kind = fstatSync(descriptor);
    const again = kind.isFIFO() || kind.isCharacterDevice() ? openedAgain(descriptor) : undefined;
    if (owns) this.#owned.push(descriptor);
    if (again !== undefined) this.#owned.push(again);
    this.#descriptor = again ?? descriptor;
    this.#waitsForNobody =
      again !== undefined || kind.isFile() || (kind.isSocket() && isStandard(descriptor));
  }

  async write(batch: Batch): Promise<Outcome> {
    const bytes = Buffer.concat([this.#lead, batch.bytes]);
    let waitedMs = 0;
    for (let numBytes = 0; numBytes < bytes.length; ) {
      try {
        numBytes += (await writeBytes(this.#descriptor, bytes.subarray(numBytes))).bytesWritten;
        waitedMs = 0;
      } catch (error) {
        if (!isBehind(error) || waitedMs >= this.#patienceMs) return this.#written(batch, numBytes, error);
        waitedMs += retryMs;
        await sleep(retryMs);
      }
    }
    return this.#written(batch, bytes.length);
  }

  writeNow(batch: Batch): Outcome | undefined {
    if (!this.#waitsForNobody) return undefined;
    const bytes = Buffer.concat([this.#lead, batch.bytes]);
    let numBytes = 0;
    try {
      while (numBytes < bytes.length) numBytes += writeSync(this.#descriptor, bytes, numBytes);
      return this.#written(batch, numBytes);
    } catch (error) {
      return this.#written(batch, numBytes, error);
    }
  }

  hurry(patienceMs: number): void {
    this.#patienceMs = patienceMs;
  }

  async close(): Promise<void> {
    for (const descriptor of this.#owned.splice(0)) await closeDescriptor(descriptor);
  }

  /** After a partial write that cannot be undone, ends the line, so that no reader takes it for a complete piece. */
  #written(batch: Batch, numBytes: number, error?: unknown): Outcome {
    if (numBytes < this.#lead.length) {
      this.#lead = this.#lead.subarray(numBytes);
      return { numPieces: 0, error: error as NodeJS.ErrnoException };
    }
    const numOfBatch = numBytes - this.#lead.length;
    const numPieces = numComplete(batch, numOfBatch);
    this.#lead = numOfBatch > (batch.ends[numPieces - 1] ?? 0) ? lineEnd : nothing;
    return { numPieces, ...(error === undefined ? {} : { error: error as NodeJS.ErrnoException }) };
  }
}

/** Writes to a stream. A stream that has failed accepts no more. */
export class StreamOutlet implements Outlet {
  readonly name = "a stream";
  readonly #stream: Writable;

  constructor(stream: Writable) {
    this.#stream = stream;
    // Without a listener the error event of a closed pipe would end the process.
    stream.on("error", () => {});
  }

  write({ bytes, ends }: Batch): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#stream.write(bytes, (error) => {
        if (error) resolve({ numPieces: 0, error: Object.assign(error, { code: ended }) });
        else resolve({ numPieces: ends.length });
      });
    });
  }

  writeNow(): undefined {
    return undefined;
  }

  async close(): Promise<void> {}
}

const ended = "ERR_STREAM_DESTROYED";
const finalCodes: ReadonlySet<string | undefined> = new Set(["EPIPE", "EBADF", ended]);

/** Whether nothing can ever be written there again: the reader has gone, or the device. */
export function isFinal(error: NodeJS.ErrnoException): boolean {
  return finalCodes.has(error.code);
}

/** Whether a reader is only slow. */
export function isBehind(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "EAGAIN";
}

/** The error for a reader that accepts nothing. */
export function behind(): NodeJS.ErrnoException {
  return Object.assign(new Error("EAGAIN: its reader takes nothing"), { code: "EAGAIN" });
}

/** Closes a descriptor; an error of that is ignored. */
export function closeDescriptor(descriptor: number): Promise<void> {
  return new Promise((resolve) => close(descriptor, () => resolve()));
}

/** Whether it is standard output or error, which do not block once Node has made a stream of them. */
function isStandard(descriptor: number): boolean {
  const { stdout, stderr } = process;
  return isMainThread && [stdout, stderr].some((stream) => stream.fd === descriptor);
}

/** Opens the same pipe or terminal without blocking; undefined where the system has no path for it. */
function openedAgain(descriptor: number): number | undefined {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return undefined;
  }
}
