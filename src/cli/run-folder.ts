import { accessSync, constants, rmdirSync } from "node:fs";
import { basename, dirname, join, parse, resolve } from "node:path";
import { LocalFolder, placeOf, stepOf } from "../checkpoint/index.ts";
import type { Given } from "../config/index.ts";
import { makeFolder } from "../make-folder.ts";
import { RESUME_AUTO } from "../trainer/index.ts";
import { usage } from "./flags.ts";

/** What asks for a folder of the run's own, chosen by its job. */
const AUTO = "auto";

/**
 * Where a run's checkpoints go that is told nothing, or `--checkpoint auto`: where the run lies that it goes on from, else
 * `runs/<job>`, or `runs/<job>-2` and so on where that holds another run.
 * @param url - of the job's module
 * @param given - what was said of options, the weakest first
 * @returns the same with a folder in it
 */
export async function withRunFolder(url: string, given: readonly Given[]): Promise<Given[]> {
  const saidDir = given.findLast(({ path }) => path.join(".") === "checkpoint.dir");
  if (saidDir !== undefined && saidDir.value !== AUTO) return [...given];
  const value = await folderOf(url, given);
  if (saidDir === undefined)
    return [{ path: ["checkpoint", "dir"], value, origin: "default", by: "" }, ...given];
  return given.map((each) => (each === saidDir ? { ...saidDir, value } : each));
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

async function folderOf(url: string, given: readonly Given[]): Promise<string> {
  const said = (path: string) => given.findLast((each) => each.path.join(".") === path)?.value;
  const resume = said("resume");
  if (typeof resume === "string" && resume !== RESUME_AUTO) return (await placeOf(resume)).storage.location;
  const base = join("runs", nameOf(url));
  // Who goes on where anything was begun has one folder for it.
  if (said("checkpoint.overwrite") === true || resume === RESUME_AUTO) return base;
  for (let number = 1; ; number++) {
    const folder = number === 1 ? base : `${base}-${number}`;
    const names = await new LocalFolder(folder).list();
    if (names.every((name) => stepOf(name) === undefined)) return folder;
  }
}

/** A job is called by its file, or by its folder where that is just `job.ts`. */
function nameOf(url: string): string {
  const { name, dir } = parse(decodeURIComponent(new URL(url).pathname));
  return name === "job" ? basename(dir) : name;
}
