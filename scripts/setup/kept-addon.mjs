import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { addonIn, forkServerIn, readBuildInfo, sourceHash, writeBuildInfo } from "./build-info.mjs";
import { layout } from "./layout.mjs";

/** A clone that is worked in makes a new addon, of 5 MB, with each change of a source. */
const NUM_KEPT = 8;
const keptAddons = join(layout.cache, "addons");

/** Where an addon of these sources is kept for other clones and for the next installation of a package. */
export function keptFolder() {
  return join(keptAddons, sourceHash().slice(0, 16));
}

/** Removes all but the newest of the kept addons. */
export function forgetOldest() {
  const folders = readdirSync(keptAddons).map((name) => join(keptAddons, name));
  const newestFirst = folders.toSorted((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  for (const folder of newestFirst.slice(NUM_KEPT)) rmSync(folder, { recursive: true, force: true });
}

/**
 * Copies a built addon and then its build info to another folder, each atomically.
 * @param {string} from - a build folder with an addon in it
 * @param {string} to - made if it does not exist
 */
export function copyAddon(from, to) {
  const info = readBuildInfo(from);
  if (info === undefined) return;
  mkdirSync(to, { recursive: true });
  const temporary = join(to, `troupe.${process.pid}.node`);
  copyFileSync(addonIn(from), temporary);
  renameSync(temporary, addonIn(to));
  placeForkServer(from, to);
  writeBuildInfo(to, info);
}

/**
 * Copies the fork server, where there is one, atomically.
 * @param {string} from
 * @param {string} to
 */
export function placeForkServer(from, to) {
  if (!existsSync(forkServerIn(from))) return;
  const temporary = join(to, `fork-server.${process.pid}.so`);
  copyFileSync(forkServerIn(from), temporary);
  renameSync(temporary, forkServerIn(to));
}
