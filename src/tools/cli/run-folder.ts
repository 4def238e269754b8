import { accessSync, constants, rmdirSync } from "node:fs";
import { basename, dirname, join, parse, resolve } from "node:path";
import { RESUME_AUTO } from "../../actors/trainer/index.ts";
import { makeFolder } from "../../errors/untrusted/index.ts";
import type { Given } from "../../job/options/index.ts";
import { LocalFolder, placeOf, stepOf } from "../../library/checkpoint/index.ts";
import { usage } from "./flags.ts";

/** What asks for a folder of the run's own, chosen by its job. */
const AUTO = "auto";
/** What asks for none: nothing goes to the disk. */
const NONE = "none";
const DIR = "checkpoint.dir";

/** What was said of options, with a folder for the checkpoints among it. */
interface WithFolder {
  readonly given: readonly Given[];
  /** Whether its number was chosen: where another program was faster there is a next one. */
  readonly isNumbered: boolean;
}

/**
 * Where a run's checkpoints go that is told nothing, or `--checkpoint auto`: where the run lies that it goes on from, else
 * `runs/<job>`, or `runs/<job>-2` and so on where that holds another run, or one is under way. Nowhere with `--checkpoint none`.
 * @param url - of the job's module
 * @param given - what was said of options, the weakest first
 * @param isAlone - whether no other hosts take part, who would see the folder taken by this one
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

/**
 * Finds out before any work begins whether checkpoints can be put into a folder; where it was not there, it is not afterwards.
 * @throws {TroupeError} `USAGE`
 */
export function checkRunFolder(folder: string): void {
  if (folder.includes("://")) return;
  try {
    const made = makeFolder(resolve(folder));
    if (made !== undefined)
      for (let last = resolve(folder); last.length >= made.length; last = dirname(last)) rmdirSync(last);
    // With a slash, a file of that name is no folder.
    else accessSync(`${folder}/`, constants.W_OK);
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
  // Who goes on where anything was begun has one folder for it.
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

/** A job is called by its file, or by its folder where that is just `job.ts`. */
function nameOf(url: string): string {
  const { name, dir } = parse(decodeURIComponent(new URL(url).pathname));
  return name === "job" ? basename(dir) : name;
}
