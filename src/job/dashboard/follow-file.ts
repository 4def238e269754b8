import { constants, type FileHandle, open, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import type { TroupeEvent } from "../events/index.ts";

/** Name of the file of events in a run's folder. */
export const eventFileName = "events.jsonl";

const { O_NONBLOCK, O_RDONLY } = constants;
const pollMs = 250;
const chunkBytes = 1 << 20;
/** A longer line is not an event: it is skipped, so that a file without line breaks does not fill memory. */
const maxLineBytes = 1 << 24;

/** Receives the events of a file. */
export interface FileReader {
  write(event: TroupeEvent): void;
  /** Called each time the end of the file is reached. */
  wait?(): Promise<void>;
  /** Called when the file was replaced or truncated: it is read again from its start. */
  reset(): void;
}

/** Finds a file of events by its path, even before it exists, or by a run's folder. @throws {TroupeError} `DASHBOARD_SOURCE` */
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

/** Reads a file of events until `signal` aborts, as it grows. Waits for a missing file; skips lines that are no events. */
export async function followFile(path: string, reader: FileReader, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // Without O_NONBLOCK, opening a named pipe would block until it has a writer.
    await using file = await open(path, O_RDONLY | O_NONBLOCK).catch(() => undefined);
    if (file !== undefined && (await file.stat()).isFile()) {
      await readOn(file, path, reader, signal);
      if (!signal.aborted) reader.reset();
    } else await pause(signal);
  }
}

/** Returns when the file was replaced, or is shorter than what was read. */
async function readOn(
  file: FileHandle,
  path: string,
  reader: FileReader,
  signal: AbortSignal,
): Promise<void> {
  const chunk = Buffer.allocUnsafe(chunkBytes);
  const add = lineReader((line) => {
    try {
      const event = parseEvent(line);
      if (event !== undefined) reader.write(event);
    } catch {
      // Not JSON, or not an event of this version.
    }
  });
  const { ino } = await file.stat();
  for (let position = 0; !signal.aborted; ) {
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, position);
    add(chunk.subarray(0, bytesRead));
    position += bytesRead;
    if (bytesRead > 0) continue;
    await reader.wait?.();
    await pause(signal);
    const now = await stat(path).catch(() => undefined);
    if (now === undefined || now.ino !== ino || now.size < position) return;
  }
}

/** Returns a function that takes chunks of bytes and calls `onLine` with each complete line. */
function lineReader(onLine: (line: string) => void): (chunk: Buffer) => void {
  let begun: Buffer[] = [];
  let numBegun = 0;
  const hold = (part: Buffer) => {
    numBegun += part.length;
    if (numBegun <= maxLineBytes) begun.push(part);
    else begun = [];
  };
  return (chunk) => {
    let begin = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, begin)) {
      hold(chunk.subarray(begin, end));
      if (numBegun <= maxLineBytes) onLine(Buffer.concat(begun).toString("utf8"));
      begun = [];
      numBegun = 0;
      begin = end + 1;
    }
    hold(Buffer.from(chunk.subarray(begin)));
  };
}

/** @returns the event of a line of the JSON-lines sink; undefined if it is not one. @throws if it is not JSON */
function parseEvent(line: string): TroupeEvent | undefined {
  const value = JSON.parse(line, revive) as Partial<TroupeEvent> | null;
  return typeof value?.kind === "string" && typeof value.timeMs === "number"
    ? (value as TroupeEvent)
    : undefined;
}

const notFinite: ReadonlySet<unknown> = new Set(["NaN", "Infinity", "-Infinity"]);

/** Restores numbers that JSON lacks, which the sink wrote as names. */
function revive(key: string, value: unknown): unknown {
  return notFinite.has(value) && key !== "text" ? Number(value) : value;
}

async function pause(signal: AbortSignal): Promise<void> {
  await sleep(pollMs, undefined, { signal }).catch(() => {});
}
