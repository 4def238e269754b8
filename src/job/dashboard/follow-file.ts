import { constants, type FileHandle, open, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import type { TroupeEvent } from "../events/index.ts";

/** Where a run of this folder tells what happens. */
export const eventFileName = "events.jsonl";

const { O_NONBLOCK, O_RDONLY } = constants;
const pollMs = 250;
const chunkBytes = 1 << 20;
/** A longer line is no event: it is passed over, so that a file without line breaks is not held in memory. */
const maxLineBytes = 1 << 24;

/** Who is told what a file holds. */
export interface FileReader {
  write(event: TroupeEvent): void;
  /** All that is there now was read. Called again and again. */
  wait?(): Promise<void>;
  /** The file was replaced or cut short: it is read from its beginning again. */
  reset(): void;
}

/**
 * Finds the file of events that a path means: the file itself, which may be yet to come, or the one in a run's folder.
 * @throws {TroupeError} `DASHBOARD_SOURCE`
 */
export async function findEventFile(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return join(path, eventFileName);
  const folder = await stat(resolve(path, "..")).catch(() => undefined);
  if (found?.isFile() || (found === undefined && path.endsWith(".jsonl") && folder?.isDirectory()))
    return path;
  const got = found === undefined ? "no such file or folder" : "neither";
  throw new TroupeError("DASHBOARD_SOURCE", {
    where: "dashboard",
    expected: `a file of events or the folder of a run at ${path}`,
    got,
    hint: whichPathWasMeant(path) ?? "give FILE.jsonl, or a folder such as runs/gpt",
  });
}

/**
 * Reads a file of events to its end, and on as it grows, until `signal`. A file that is not there yet is waited for; lines
 * that are no events are passed over.
 */
export async function followFile(path: string, reader: FileReader, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // A pipe would let nobody in, nor out, until somebody writes to it.
    await using file = await open(path, O_RDONLY | O_NONBLOCK).catch(() => undefined);
    if (file !== undefined && (await file.stat()).isFile()) {
      await readOn(file, path, reader, signal);
      if (!signal.aborted) reader.reset();
    } else await pause(signal);
  }
}

/** Ends when the file under this name is another, or shorter than what was read of it. */
async function readOn(
  file: FileHandle,
  path: string,
  reader: FileReader,
  signal: AbortSignal,
): Promise<void> {
  const chunk = Buffer.allocUnsafe(chunkBytes);
  const lines = new Lines((line) => {
    try {
      const event = parseEvent(line);
      if (event !== undefined) reader.write(event);
    } catch {
      // Neither JSON nor an event of this version.
    }
  });
  const { ino } = await file.stat();
  for (let position = 0; !signal.aborted; ) {
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, position);
    lines.add(chunk.subarray(0, bytesRead));
    position += bytesRead;
    if (bytesRead > 0) continue;
    await reader.wait?.();
    await pause(signal);
    const now = await stat(path).catch(() => undefined);
    if (now === undefined || now.ino !== ino || now.size < position) return;
  }
}

/** Puts chunks together into lines. */
class Lines {
  readonly #onLine: (line: string) => void;
  #begun: Buffer[] = [];
  #numBegun = 0;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(chunk: Buffer): void {
    let begin = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, begin)) {
      this.#hold(chunk.subarray(begin, end));
      if (this.#numBegun <= maxLineBytes) this.#onLine(Buffer.concat(this.#begun).toString("utf8"));
      this.#begun = [];
      this.#numBegun = 0;
      begin = end + 1;
    }
    this.#hold(Buffer.from(chunk.subarray(begin)));
  }

  #hold(part: Buffer): void {
    this.#numBegun += part.length;
    if (this.#numBegun <= maxLineBytes) this.#begun.push(part);
    else this.#begun = [];
  }
}

/** @returns the event of a line that the JSON-lines sink wrote, undefined where it is none. @throws unless it is JSON */
function parseEvent(line: string): TroupeEvent | undefined {
  const value = JSON.parse(line, revive) as Partial<TroupeEvent> | null;
  return typeof value?.kind === "string" && typeof value.timeMs === "number"
    ? (value as TroupeEvent)
    : undefined;
}

const notFinite: ReadonlySet<unknown> = new Set(["NaN", "Infinity", "-Infinity"]);

/** What the sink wrote as a name, because JSON has no number for it. */
function revive(key: string, value: unknown): unknown {
  return notFinite.has(value) && key !== "text" ? Number(value) : value;
}

async function pause(signal: AbortSignal): Promise<void> {
  await sleep(pollMs, undefined, { signal }).catch(() => {});
}
