import { copyFileSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { addonIn, readBuildInfo, sourceHash, writeBuildInfo } from "./build-info.mjs";
import { isClone, layout } from "./layout.mjs";

/**
 * Where an addon of these sources outlives the package that built it, whose folder goes with each new installation;
 * undefined in a clone, whose build folder stays.
 */
export function keptFolder() {
  return isClone ? undefined : join(layout.cache, "addons", sourceHash().slice(0, 16));
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
  writeBuildInfo(to, info);
}
