import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import { verifyCheckpoint } from "../../src/library/checkpoint/reading/verify.ts";
import { writeCheckpoint } from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import { contentOf } from "../checkpoint/content.ts";
import { saveStep, saveUnder, stepIn } from "../checkpoint/injection.ts";
import type { Workspace } from "../fixtures/run-tiny.ts";
import type { Chance } from "./chance.ts";
import { preloaded } from "./preloaded.ts";
import { trainAndSave } from "./run-program.ts";
import type { Trained, TrainingOrder } from "./train-and-save.ts";

/** The result of saves under one kind of fault. */
export interface SavesReport {
  readonly fault: string;
  /** Saves that the fault hit. */
  readonly numMet: number;
  /** Saves that were lost, left behind, or reported wrongly. */
  readonly wrong: readonly string[];
}

/** Every call by which a save changes the file system. */
const calls = ["mkdir", "pwrite64", "fsync", "rename", "unlink", "rmdir", "sync_file_range", "fallocate"];
/** More than one save makes of any. */
const mostCalls = 100;

/** Kills a save at each call of each kind, then lets each call fail with `errno`. */
export async function injectEverywhere(
  folder: string,
  onReport: (report: SavesReport) => void,
): Promise<void> {
  for (const call of calls) {
    onReport(await underFault(folder, call, "signal=KILL"));
    for (const errno of ["ENOSPC", "EIO"]) onReport(await underFault(folder, call, `error=${errno}`));
  }
}

async function underFault(folder: string, call: string, fault: string): Promise<SavesReport> {
  const wrong: string[] = [];
  let count = 1;
  for (; count < mostCalls; count++) {
    const directory = join(folder, "save");
    rmSync(directory, { recursive: true, force: true });
    await writeCheckpoint(directory, contentOf(1));
    const { saved, failed } = await saveUnder(fault, call, count, directory, 2);
    const found = await stepIn(directory);
    const note = (what: string): void => void wrong.push(`${call} ${count}: ${what}`);
    if (saved !== undefined && found !== 2) note(`saved, but step ${found} is there`);
    if (found !== 1 && found !== 2) note(`step ${found} is there`);
    if (failed !== undefined && failed.code !== "CHECKPOINT_SAVE_FAILED") note(`failed with ${failed.code}`);
    if (failed !== undefined) noteLeft(directory, note);
    await new LocalFolder(directory).sweep();
    noteLeft(directory, note);
    if (saved !== undefined) break;
  }
  return { fault: `${fault} at each ${call}`, numMet: count - 1, wrong };
}

/** Kills saves at moments that chance chooses. */
export async function killAtRandom(folder: string, numKills: number, chance: Chance): Promise<SavesReport> {
  const directory = join(folder, "killed");
  mkdirSync(directory, { recursive: true });
  const wrong: string[] = [];
  await writeCheckpoint(directory, contentOf(1));
  let acknowledged = 1;
  let numMet = 0;
  for (let step = 2; numMet < numKills; step++) {
    const child = spawn(process.execPath, [saveStep, directory, String(step), "200000"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const output = child.stdout.toArray();
    // It saves as soon as it finds its folder: from then on it is a matter of milliseconds.
    while (
      !readdirSync(directory).some((entry) => entry.startsWith(".saving-step")) &&
      child.exitCode === null
    ) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    setTimeout(() => child.kill("SIGKILL"), chance.below(40));
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    if ((await output).join("").includes("saved")) acknowledged = step;
    if (child.signalCode === "SIGKILL") numMet += 1;
    const found = await stepIn(directory);
    if (found < acknowledged) wrong.push(`step ${acknowledged} was acknowledged, ${found} is there`);
    for (const name of readdirSync(directory)
      .filter((entry) => /^step-/.test(entry))
      .toSorted()
      .slice(0, -2)) {
      rmSync(join(directory, name), { recursive: true });
    }
  }
  return { fault: "SIGKILL at random moments", numMet, wrong };
}

function noteLeft(directory: string, note: (what: string) => void): void {
  const left = readdirSync(directory).filter((entry) => entry.startsWith("."));
  if (left.length > 0) note(`left ${left.join(", ")}`);
}

const struckJob = new URL("../fixtures/jobs/struck.ts", import.meta.url).href;

/**
 * Trains while one call of each thread that saves fails: training must come to the undisturbed losses, each save must be reported
 * once, as saved or as failed, and nothing half-written may stay.
 * @param count - which of a thread's calls fails, from 1
 */
export async function failWhileTraining(
  workspace: Workspace,
  undisturbed: readonly number[],
  call: string,
  errno: string,
  count: number,
): Promise<SavesReport> {
  const injection = `inject=${call}:error=${errno}:when=${count}`;
  const inject = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`, "-e", injection];
  const fault = `${errno} at ${call} ${count} of each thread, while training`;
  const directory = workspace.path(`run-${call}-${errno}-${count}`);
  return saveWhileTraining(fault, workspace, directory, undisturbed, { under: ["strace", ...inject] });
}

/** Whether a program can be left without descriptors here. */
export const canStarve = spawnSync("prlimit", ["--version"]).status === 0;

/** Trains while for some steps no descriptor can be opened (EMFILE): as {@link failWhileTraining}. */
export async function starveWhileTraining(
  workspace: Workspace,
  undisturbed: readonly number[],
): Promise<SavesReport> {
  const fault = "no descriptor left in steps 4 to 9, while training";
  const directory = workspace.path("run-starved");
  // At a pace at which the program that takes the descriptors away keeps up.
  const starved = { config: { pauseMs: 100 }, starved: [4, 9] } as const;
  return saveWhileTraining(fault, workspace, directory, undisturbed, starved);
}

/** Trains while every write takes half of what it was given, as any may: as {@link failWhileTraining}, and no save may fail. */
export async function shortenWrites(
  workspace: Workspace,
  undisturbed: readonly number[],
): Promise<SavesReport> {
  const fault = "every write takes half of what it was given, while training";
  const directory = workspace.path("run-short-writes");
  const env = { LD_PRELOAD: preloaded(workspace, "short-writes") };
  const report = await saveWhileTraining(fault, workspace, directory, undisturbed, { env });
  const wrong = [...report.wrong];
  if (report.numMet > 0) wrong.push(`${report.numMet} saves failed`);
  const storage = new LocalFolder(directory);
  for (const name of await storage.list())
    for (const { path } of await verifyCheckpoint(storage, name)) wrong.push(`${path} is damaged`);
  return { fault, numMet: (await storage.list()).length, wrong };
}

/** The disturbance of a run. */
interface Disturbed extends Pick<TrainingOrder, "starved"> {
  readonly config?: TrainingOrder["config"];
  readonly env?: NodeJS.ProcessEnv;
  /** The command that runs the program. */
  readonly under?: readonly string[];
}

/** Runs a program that trains twelve steps and saves every third, and looks at what it reported and at what is there. */
async function saveWhileTraining(
  fault: string,
  workspace: Workspace,
  directory: string,
  undisturbed: readonly number[],
  { under = [], config = {}, env = {}, ...disturbed }: Disturbed,
): Promise<SavesReport> {
  mkdirSync(directory);
  const order: TrainingOrder = {
    job: struckJob,
    config: { data: workspace.text, cache: workspace.path("cache"), ...config },
    options: { ranks: 2, threadsPerRank: 1, steps: 12, checkpoint: { dir: directory, everySteps: 3 } },
    ...disturbed,
  };
  const [command = "", ...args] = [...under, process.execPath, trainAndSave, JSON.stringify(order)];
  const { stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1", ...env }, // Node's own calls are not to be counted
  });
  const trained = JSON.parse(stdout.trim().split("\n").at(-1) || "null") as Trained | null;
  const ending = trained === null ? stderr.slice(-300) : trained.error?.message;
  if (trained === null || ending !== undefined)
    return { fault, numMet: 0, wrong: [`the run ended: ${ending}`] };
  const wrong: string[] = [];
  if (trained.made.map(([, lossNats]) => lossNats).join() !== undisturbed.join()) wrong.push("other losses");
  const steps = [...trained.saved, ...trained.failed.map(({ step }) => step)].toSorted((a, b) => a - b);
  if (steps.join() !== "3,6,9,12") wrong.push(`saves reported: ${steps}`);
  const codes = trained.failed.map(({ code }) => code);
  if (codes.some((code) => code !== "CHECKPOINT_SAVE_FAILED")) wrong.push(`failed with ${codes}`);
  noteLeft(directory, (what) => wrong.push(what));
  const newest = trained.saved.at(-1);
  if (newest !== undefined) {
    await using checkpoint = await openCheckpoint(directory);
    if (checkpoint.state.step < newest)
      wrong.push(`step ${newest} was reported saved, ${checkpoint.state.step} is there`);
  }
  return { fault, numMet: trained.failed.length, wrong };
}
