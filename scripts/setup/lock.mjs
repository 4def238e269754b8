import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { note } from "./say.mjs";

/**
 * Runs `body` while no other process runs under the same lock file: two builds never write one folder at once.
 * A lock whose process has died is taken over.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withLock(file, body) {
  mkdirSync(dirname(file), { recursive: true });
  for (let waited = false; !tryTake(file); waited = true) {
    if (!waited) note(`another process is setting up (${file}), waiting for it`);
    await sleep(200);
  }
  try {
    return await body();
  } finally {
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
    if (holderIsDead(file)) rmSync(file, { force: true });
    return false;
  }
}

/** @param {string} file */
function holderIsDead(file) {
  try {
    const { pid, host } = JSON.parse(readFileSync(file, "utf8"));
    if (host !== hostname()) return false;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    // ESRCH: no such process. Anything else (just removed, half written, another user's) is looked at again later.
    return /** @type {NodeJS.ErrnoException} */ (error).code === "ESRCH";
  }
}
