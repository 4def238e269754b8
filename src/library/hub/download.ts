import { createHash, type Hash } from "node:crypto";
import { constants, createReadStream, existsSync, mkdirSync } from "node:fs";
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { native } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { isStillAt } from "../../errors/untrusted/index.ts";
import { type FileFacts, type HubEndpoint, reasonOf, unreachable } from "./endpoint.ts";

// In a shared cache, another user's link must not be followed.
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR, O_WRONLY } = constants;

/** A file to download, and its place in the cache. */
export interface Download {
  /** Its name, for messages. */
  readonly file: string;
  readonly facts: FileFacts;
  /** Path of the complete content. */
  readonly blob: string;
  readonly lock: string;
  /**
   * Receives a line when bytes begin to arrive, with the number present from an earlier attempt; and when another
   * process downloads them.
   */
  readonly tell: (line: string) => void;
}

/** Attempts in a row without any bytes. */
const VAIN_TRIES = 5;
const SILENCE_MS = 10_000;
const POLL_MS = 50;

/**
 * Downloads a content into the cache: once for any number of processes, continuing an earlier attempt, and only if its
 * bytes match its name.
 * @throws {TroupeError} `HUB_UNREACHABLE`, `HUB_CHECKSUM`
 */
export async function download(hub: HubEndpoint, wanted: Download): Promise<void> {
  const { blob, lock, file, tell } = wanted;
  if (existsSync(blob)) return;
  await using _ = await lockFile(lock, () => tell(`waiting for ${file}, which another process downloads`));
  if (existsSync(blob)) return;
  mkdirSync(dirname(blob), { recursive: true });
  const partial = `${blob}.incomplete`;
  const resumed = await sizeOf(partial);
  // The rest of an earlier attempt may be of another content: then once more from the beginning.
  for (let tries = resumed > 0 ? 2 : 1; tries > 0; tries--) {
    await fetchInto(hub, wanted, partial);
    if (await isAsPromised(wanted.facts, partial)) return rename(partial, blob);
    await rm(partial, { force: true });
  }
  throw new TroupeError("HUB_CHECKSUM", {
    where: "hub",
    expected: `${file} with the checksum ${wanted.facts.etag} that ${hub.address} says it has`,
    got: "other bytes",
    hint: "the bytes were discarded: try again, or use another HF_ENDPOINT",
  });
}

/**
 * Waits for the kernel's lock on a file, the same one that Python's `filelock` takes; it ends with its holder, however that
 * ends. On a file system without locks, every caller gets one.
 * @param onWait - called once, if another process has it
 * @returns the open file, which is locked until it is closed. It is never removed, since that would race with others.
 */
async function lockFile(path: string, onWait: () => void): Promise<FileHandle> {
  mkdirSync(dirname(path), { recursive: true });
  let isFirst = true;
  for (;;) {
    const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o664);
    const isOurs = native().tryLock(file.fd) !== false;
    // Its last holder may have removed the file since it was opened: then the lock means nothing.
    if (isOurs && (await isStillAt(path, file))) return file;
    await file.close();
    if (isOurs) continue;
    if (isFirst) onWait();
    isFirst = false;
    await sleep(POLL_MS);
  }
}

async function fetchInto(hub: HubEndpoint, wanted: Download, partial: string): Promise<void> {
  const { facts, file, tell } = wanted;
  const { sizeBytes } = facts;
  const begin = await sizeOf(partial);
  tell(
    `downloading ${file}${sizeBytes === undefined ? "" : `, ${megabytes(sizeBytes)}`}${begin > 0 ? `, of which ${megabytes(begin)} are here` : ""}`,
  );
  await using target = await open(partial, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o666);
  for (let vain = 0, from = begin; ; ) {
    if (sizeBytes !== undefined && from > sizeBytes) {
      await target.truncate(0);
      from = 0;
    }
    if (from === sizeBytes) return;
    let failure: unknown;
    try {
      if (await append(hub, facts, target, from)) return;
      failure = new Error("a connection that ended early");
    } catch (error) {
      if (error instanceof TroupeError) throw error;
      // A full disk is not the hub's error.
      if ((error as NodeJS.ErrnoException).syscall === "write") throw error;
      failure = error;
    }
    const here = (await target.stat()).size;
    vain = here > from ? 0 : vain + 1;
    from = here;
    if (vain === VAIN_TRIES)
      throw unreachable(
        hub.address,
        `${reasonOf(failure)} after ${megabytes(from)} of ${file}`,
        "the part so far is kept: the same command continues from there",
        failure,
      );
    if (vain > 0) await sleep(hub.firstDelayMs * 2 ** (vain - 1));
  }
}

/** Requests the missing bytes. @returns whether all have arrived */
async function append(
  hub: HubEndpoint,
  { url, sizeBytes }: FileFacts,
  target: FileHandle,
  from: number,
): Promise<boolean> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const headers = from > 0 ? { range: `bytes=${from}-` } : {};
    const response = await hub.ask(url, { headers, signal: silence.signal });
    // Nothing is left to send: all bytes are here.
    if (response.status === 416) {
      await response.body?.cancel();
      return true;
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw unreachable(hub.address, `status ${response.status} of ${new URL(url).host}`);
    }
    // A server without support for ranges starts from the beginning.
    let written = from;
    if (from > 0 && response.status !== 206) {
      await target.truncate(0);
      written = 0;
    }
    for await (const bytes of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      await target.appendFile(bytes);
      written += bytes.byteLength;
    }
    return sizeBytes === undefined || written >= sizeBytes;
  } finally {
    clearTimeout(timer);
  }
}

/** Checks a content by its name, SHA-256 or Git's SHA-1; for other names, by its size. */
async function isAsPromised({ etag, sizeBytes }: FileFacts, path: string): Promise<boolean> {
  const size = await sizeOf(path);
  if (sizeBytes !== undefined && size !== sizeBytes) return false;
  if (/^[\da-f]{64}$/.test(etag)) return (await digest(createHash("sha256"), path)) === etag;
  if (/^[\da-f]{40}$/.test(etag))
    return (await digest(createHash("sha1").update(`blob ${size}\0`), path)) === etag;
  return true;
}

async function digest(hash: Hash, path: string): Promise<string> {
  for await (const bytes of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(bytes as Buffer);
  return hash.digest("hex");
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toPrecision(3)} MB`;
