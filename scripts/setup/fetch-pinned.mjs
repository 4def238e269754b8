import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, rmSync, statSync } from "node:fs";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** Tries in a row that bring less than a MiB, before a place is given up. */
const MAX_TRIES = 5;
const MIB = 2 ** 20;

/**
 * A file of known content, to be had at one of several places.
 * @typedef {object} Pinned
 * @property {readonly string[]} places - paths and addresses, best first
 * @property {string} sha256
 * @property {number | undefined} [sizeBytes] - if known
 * @property {string} part - the file for what was downloaded; it outlives a failure, and the next download goes on from there
 * @property {(bytes: number, total: number | undefined) => void} [onProgress]
 * @property {number} [stallMs] - no byte for so long is an end of the connection
 * @property {number} [pauseMs] - before the second try; twice as long before each further one
 */

/**
 * Finds a file at one of its places, and downloads it if that is an address. What is returned has the content that was asked for.
 * @param {Pinned} pinned
 * @returns {Promise<string>} its path: `part`, or one of the places
 * @throws {Error} with a line for each place; an error of the file system as it is
 */
export async function fetchPinned(pinned) {
  const reasons = [];
  for (const place of pinned.places) {
    try {
      if (/^https?:/.test(place)) return await download(place, pinned);
      await check(place, pinned.sha256);
      return place;
    } catch (error) {
      const { message, code } = /** @type {NodeJS.ErrnoException} */ (error);
      if (code === "ENOSPC") throw error;
      reasons.push(`  ${place}: ${code === "ENOENT" ? "no such file" : message}`);
    }
  }
  throw new Error(reasons.join("\n"));
}

/** Thrown where another try at the same place would bring the same. */
class GivenUp extends Error {}

/**
 * @param {string} url
 * @param {Pinned} pinned
 */
async function download(url, pinned) {
  const { part, sha256, pauseMs = 1_000 } = pinned;
  let hasBegunAfresh = sizeOf(part) === 0;
  for (let numTries = 0; ; ) {
    const before = sizeOf(part);
    try {
      await goOn(url, pinned);
      await check(part, sha256);
      return part;
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOSPC") throw error;
      if (error instanceof WrongContent) {
        rmSync(part, { force: true });
        // An earlier process may have left something wrong.
        if (hasBegunAfresh) throw error;
        hasBegunAfresh = true;
        continue;
      }
      if (error instanceof GivenUp) throw error;
      numTries = sizeOf(part) - before >= MIB ? 0 : numTries + 1;
      if (numTries >= MAX_TRIES) throw new Error(`${reasonOf(error)}, ${numTries} times in a row`);
    }
    await sleep(pauseMs * 2 ** Math.max(0, numTries - 1));
  }
}

/**
 * Appends what is missing of the file, or all of it where the server sends no ranges.
 * @param {string} url
 * @param {Pinned} pinned
 */
async function goOn(url, { part, sizeBytes, onProgress, stallMs = 30_000 }) {
  const have = sizeOf(part);
  if (have === sizeBytes) return;
  const stalled = new AbortController();
  const say = () => stalled.abort(new Error(`no byte for ${stallMs / 1_000} s`));
  const clock = setTimeout(say, stallMs);
  try {
    const range = have === 0 ? {} : { range: `bytes=${have}-` };
    const headers = { "accept-encoding": "identity", ...range };
    const response = await fetch(url, { headers, signal: stalled.signal });
    const { status, body } = response;
    const continues = status === 206 && Number(/^bytes (\d+)-/.exec(rangeOf(response))?.[1]) === have;
    if (status === 416 || (status === 206 && !continues)) {
      await body?.cancel();
      rmSync(part, { force: true });
      throw new Error(`no range from byte ${have} on`);
    }
    if (status >= 400 && status < 500 && status !== 408 && status !== 429)
      throw new GivenUp(`HTTP status ${status}`);
    if (!response.ok || body === null) throw new Error(`HTTP status ${status}`);
    let received = continues ? have : 0;
    const total = sizeBytes ?? totalOf(response, received);
    const counting = new Transform({
      transform(chunk, _encoding, done) {
        clock.refresh();
        received += chunk.length;
        if (total !== undefined && received > total)
          return done(new WrongContent(`expected ${total} bytes, got more`));
        onProgress?.(received, total);
        done(null, chunk);
      },
    });
    const file = createWriteStream(part, { flags: continues ? "a" : "w", mode: 0o600 });
    await pipeline(body, counting, file, { signal: stalled.signal });
    if (total !== undefined && received < total) throw new Error(`the server ended after ${received} bytes`);
  } catch (error) {
    throw stalled.signal.aborted ? stalled.signal.reason : error;
  } finally {
    clearTimeout(clock);
  }
}

/** @param {Response} response */
function rangeOf(response) {
  return response.headers.get("content-range") ?? "";
}

/**
 * @param {Response} response
 * @param {number} have - bytes before its first
 */
function totalOf(response, have) {
  const length = Number(response.headers.get("content-length") ?? Number.NaN);
  return Number.isSafeInteger(length) ? have + length : undefined;
}

/** A file that is not the one that was asked for. */
class WrongContent extends GivenUp {}

/**
 * @param {string} path
 * @param {string} sha256
 */
async function check(path, sha256) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: MIB }), hash);
  const got = hash.digest("hex");
  if (got !== sha256) throw new WrongContent(`expected a file with SHA-256 ${sha256}, got ${got}`);
}

/** @param {string} path */
function sizeOf(path) {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** @param {unknown} error - `fetch` says "fetch failed", and why in its cause */
function reasonOf(error) {
  const { message, cause } = /** @type {Error} */ (error);
  const { message: reason, code } = /** @type {NodeJS.ErrnoException} */ (cause ?? {});
  return reason || code || message;
}
