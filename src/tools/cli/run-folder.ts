import { accessSync, constants, existsSync, mkdtempSync, rmdirSync } from "node:fs";
import { basename, dirname, join, parse, resolve } from "node:path";
import { RESUME_AUTO } from "../../actors/trainer/index.ts";
import type { Given } from "../../job/options/index.ts";
import { LocalFolder, placeOf, stepOf } from "../../library/checkpoint/index.ts";
import { usage } from "./flags.ts";

/** Value of `--checkpoint` for a folder named after the job. */
const AUTO = "auto";
/** Value of `--checkpoint` for no folder: nothing is written to the disk. */
const NONE = "none";
const DIR = "checkpoint.dir";

/** Options that were given, with a folder for the checkpoints added. */
interface WithFolder {
  readonly given: readonly Given[];
  /** Whether its number was chosen here: then another can be tried if another process takes the folder first. */
  readonly isNumbered: boolean;
}

/**
 * Chooses the checkpoint folder of a run without one, or with `--checkpoint auto`: that of the run it resumes, else `runs/<job>`,
 * or `runs/<job>-2` and so on where that has another run or one in progress. `--checkpoint none` chooses none.
 * @param url - of the job's module
 * @param given - options so far; later ones win
 * @param isAlone - whether no other hosts take part, which would find the folder taken by this one
 */
export async function withRunFolder(
  url: string,
  given: readonly Given[],
  isAlone: boolean,
): Promise<WithFolder> {
  const saidDir = given.findLast(({ path }) => path.join(".") === DIR);
  if (saidDir?.value === NONE)
    return { given: given.filter(({ path }) => path.join(".") !== DIR), isNumbered: false };
  if (saidDir !== undefined && saidDir.value !== AUTO) return { given, isNumbered: false };
  const { folder: value, isNumbered } = await folderOf(url, given, isAlone);
  if (saidDir === undefined)
    return {
      given: [{ path: ["checkpoint", "dir"], value, origin: "default", by: "" }, ...given],
      isNumbered,
    };
  return { given: given.map((each) => (each === saidDir ? { ...saidDir, value } : each)), isNumbered };
}

/** Checks that a folder can have checkpoints, before any work; leaves none that was not there. @throws {TroupeError} `USAGE` */
export function checkRunFolder(folder: string): void {
  if (folder.includes("://")) return;
  try {
    const path = resolve(folder);
    let there = path;
    while (!existsSync(there)) there = dirname(there);
    // The slash makes this fail for a file.
    accessSync(`${there}/`, constants.W_OK);
    // Under a name of its own: another run may be making the same folder now.
    if (there !== path) rmdirSync(mkdtempSync(join(there, ".troupe-")));
  } catch (error) {
    throw usage("--checkpoint to be a folder that can be written", folder, (error as Error).message);
  }
}

async function folderOf(
  url: string,
  given: readonly Given[],
  isAlone: boolean,
): Promise<{ readonly folder: string; readonly isNumbered: boolean }> {
  const said = (path: string) => given.findLast((each) => each.path.join(".") === path)?.value;
  const resume = said("resume");
  if (typeof resume === "string" && resume !== RESUME_AUTO) {
    const { storage } = await placeOf(resume);
    return { folder: storage.location, isNumbered: false };
  }
  const base = join("runs", nameOf(url));
  // A run that is always resumed in place has one folder.
  if (said("checkpoint.overwrite") === true || resume === RESUME_AUTO)
    return { folder: base, isNumbered: false };
  for (let number = 1; ; number++) {
    const folder = number === 1 ? base : `${base}-${number}`;
    const storage = new LocalFolder(folder);
    const names = await storage.list();
    const isFree = names.every((name) => stepOf(name) === undefined);
    if (isFree && !(isAlone && (await storage.holder()) !== undefined))
      return { folder, isNumbered: isAlone };
  }
}

/** A job's name: its file's, or its folder's where the file is `job.ts`. */
function nameOf(url: string): string {
  const { name, dir } = parse(decodeURIComponent(new URL(url).pathname));
  return name === "job" ? basename(dir) : name;
}
