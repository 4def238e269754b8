import { existsSync } from "node:fs";
import { join } from "node:path";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { tinyJob, type Workspace } from "../../fixtures/run-tiny.ts";
import type { Placement } from "../faults.ts";
import { runProgram, type Surroundings } from "../run-program.ts";
import { canStarve } from "../saves.ts";
import type { TrainingOrder } from "../train-and-save.ts";
import { judge, type Outcome, type Verdict } from "../verdict.ts";
import { type BadLink, badLinkVariable } from "./bad-link.ts";

/** The disturbance of a complete run, and its allowed results. */
export interface Weather {
  readonly title: string;
  readonly placement: Placement;
  readonly outcomes: readonly Outcome[];
  readonly order?: Pick<TrainingOrder, "spareDescriptors">;
  /** @param folder - of the run */
  readonly around?: (folder: string) => Omit<Surroundings, "folder">;
  /** Whether a file of this name tells that it has happened. */
  readonly doneFile?: string;
}

/** Steps of every run. */
export const STEPS = 6;

const module = (name: string): string => new URL(`./${name}.ts`, import.meta.url).href;

/** Every weather, in the order in which it is printed. */
export const weathers: readonly Weather[] = [
  ...(["thread", "process"] as const).map(
    (placement): Weather => ({
      title: "the wall clock is set by an hour every 50 ms",
      placement,
      outcomes: ["same"],
      around: () => ({ preload: module("wall-clock") }),
    }),
  ),
  badLink("a frame from a rank's process to the program is lost", { from: 1, to: 0, times: 0 }),
  badLink("a frame from a rank's process to the program comes twice", { from: 1, to: 0, times: 2 }),
  badLink("a frame from the program to a rank's process is lost", { from: 0, to: 1, times: 0 }),
  badLink("a frame from the program to a rank's process comes twice", { from: 0, to: 1, times: 2 }),
  badLink("a frame from one rank's process to another's is lost", { from: 1, to: 2, times: 0 }),
  badLink("a frame from one rank's process to another's comes twice", { from: 1, to: 2, times: 2 }),
  ...(canStarve ? [0, 10, 20, 40, 80] : []).flatMap((spareDescriptors) =>
    (["thread", "process"] as const).map(
      (placement): Weather => ({
        title: `${spareDescriptors} descriptors are left when it starts`,
        placement,
        outcomes: ["error", "same", "unsaved"],
        order: { spareDescriptors },
      }),
    ),
  ),
];

function badLink(title: string, bad: Pick<BadLink, "from" | "to" | "times">): Weather {
  const doneFile = "spoilt";
  return {
    title,
    placement: "process",
    outcomes: ["again"],
    doneFile,
    around: (folder) => ({
      preload: module("bad-link"),
      env: {
        // While steps are made.
        [badLinkVariable]: JSON.stringify({ ...bad, frame: 25, doneFile: join(folder, doneFile) }),
      },
    }),
  };
}

/**
 * Runs a program of its own in this weather, and judges what it reported and what it left.
 * @param undisturbed - losses of {@link STEPS} steps of two ranks, ZeRO 3
 */
export async function tryWeather(
  workspace: Workspace,
  undisturbed: readonly number[],
  { title, placement, outcomes, order, around, doneFile }: Weather,
): Promise<Verdict> {
  const folder = workspace.path(`${title}-${placement}`.replaceAll(/[^a-z0-9]+/g, "-"));
  const dir = join(folder, "run");
  const options: RuntimeOptions = {
    ranks: 2,
    placement,
    threadsPerRank: 1,
    steps: STEPS,
    stallMs: 1_000,
    warmStandby: false,
    checkpoint: { dir, everySteps: 3 },
  };
  const config = { data: workspace.text, cache: workspace.path("cache") };
  const job = tinyJob.href;
  const ran = await runProgram({ job, config, options, ...order }, { folder, ...around?.(folder) });
  const verdict = await judge(ran, { undisturbed, dir, mayLeaveDraft: false });
  const wrong = [...verdict.wrong];
  if (!outcomes.includes(verdict.outcome)) wrong.push(`came to "${verdict.outcome}" ${verdict.code ?? ""}`);
  if (doneFile !== undefined && !existsSync(join(folder, doneFile))) wrong.push("nothing was spoilt");
  return { ...verdict, outcome: wrong.length > 0 ? "FAILS" : verdict.outcome, wrong };
}
