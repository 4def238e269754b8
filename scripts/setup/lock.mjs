import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { note } from "./say.mjs";

/** How often a holder says that it still works. */
const TOUCH_MS = 2_000;
/** How long nobody may have said so before a lock counts as left: by a process of another host, or in the middle of its writing. */
const LEFT_MS = 60_000;

/**
 * Runs `body` while no other process runs under the same lock file: two builds never write one folder at once.
 * A lock whose process has died is taken over: at once where that is known, else when it was long not touched.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} body
 * @param {{ leftMs?: number }} [options]
 * @returns {Promise<T>}
 */
export async function withLock(file, body, { leftMs = LEFT_MS } = {}) {
  mkdirSync(dirname(file), { recursive: true });
  const watch = new Watch(file, leftMs);
  for (let waited = false; !tryTake(file); waited = true) {
    if (watch.isLeft()) {
      remove(file, watch.text);
      continue;
    }
    if (!waited) note(`another process is setting up (${file}), waiting for it`);
    await sleep(200);
  }
  const touching = setInterval(() => touch(file), TOUCH_MS);
  touching.unref();
  try {
    return await body();
  } finally {
    clearInterval(touching);
    rmSync(file, { force: true });
  }
}

/** @param {string} file */
function tryTake(file) {
  try {
    writeFileSync(file, JSON.stringify({ pid: process.pid, host: hostname() }), { flag: "wx" });
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
    return false;
  }
}

/** Watches another process's lock. Its age is measured by this process's clock alone, since the clocks of two hosts may differ. */
class Watch {
  /** The content of the lock file. */
  text = "";
  #file;
  #leftMs;
  #touchedMs = Number.NaN;
  #restsSinceMs = 0;

  /**
   * @param {string} file
   * @param {number} leftMs
   */
  constructor(file, leftMs) {
    this.#file = file;
    this.#leftMs = leftMs;
  }

  /** Looks again. @returns whether nobody holds the lock any more */
  isLeft() {
    try {
      const { mtimeMs } = statSync(this.#file);
      this.text = readFileSync(this.#file, "utf8");
      if (mtimeMs !== this.#touchedMs) this.#restsSinceMs = performance.now();
      this.#touchedMs = mtimeMs;
    } catch {
      return false; // just given back
    }
    return isHeldByDead(this.text) || performance.now() - this.#restsSinceMs > this.#leftMs;
  }
}

/** @param {string} text */
function isHeldByDead(text) {
  try {
    const { pid, host } = JSON.parse(text);
    if (host === hostname()) process.kill(pid, 0);
    return false;
  } catch (error) {
    // ESRCH: no such process. Anything else (half written, another user's) is left to its resting.
    return /** @type {NodeJS.ErrnoException} */ (error).code === "ESRCH";
  }
}

/**
 * Removes a lock that was left, unless another process has done so meanwhile and holds its own.
 * @param {string} file
 * @param {string} text - of the lock that was left
 */
function remove(file, text) {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
  } catch {
    return; // removed already
  }
  if (readFileSync(aside, "utf8") !== text) renameSync(aside, file);
  else rmSync(aside);
}

/** @param {string} file */
function touch(file) {
  const now = new Date();
  try {
    utimesSync(file, now, now);
  } catch {
    // Taken over by a process that thought this one dead: nothing is to be done about it.
  }
}
