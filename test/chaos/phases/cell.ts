import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "../../fixtures/run-tiny.ts";
import { runProgram } from "../run-program.ts";
import { judge, type Verdict } from "../verdict.ts";
import { type Cell, type Strike, strikeVariable } from "./matrix.ts";

/** Steps of every cell's run: enough to be struck after its first step, and to save before the end. */
export const STEPS = 6;
const SAVE_EVERY = 3;

/** Before the first step no usual times are known: an actor that hangs then is noticed by the deadline of the actor that asked it. */
const SHORT_DEADLINE_MS = 1_500;
const STALL_MS = 500;

const strikingModule = new URL("./strike.ts", import.meta.url).href;
const job = new URL("./job.ts", import.meta.url).href;

/**
 * Runs a program of its own whose one actor is struck once in one phase, and judges what it reported and what it left.
 * @param undisturbed - losses of {@link STEPS} steps of two ranks, ZeRO 3
 */
export async function tryCell(
  workspace: Workspace,
  undisturbed: readonly number[],
  cell: Cell,
): Promise<Verdict> {
  const { placement, phase, fault } = cell;
  const folder = workspace.path(`${placement}-${phase.name}-${fault.name}`);
  const dir = join(folder, "run");
  const strike: Strike = {
    actor: phase.actor,
    phase: phase.name,
    visit: phase.visit,
    fault: fault.name,
    doneFile: join(folder, "struck"),
  };
  const options = {
    ranks: 2,
    placement,
    threadsPerRank: 1,
    steps: STEPS,
    stallMs: STALL_MS,
    warmStandby: false,
    checkpoint: { dir, everySteps: SAVE_EVERY },
    ...(standsBeforeSteps(cell) ? { deadlineMs: SHORT_DEADLINE_MS } : {}),
  };
  const config = { data: workspace.text, cache: workspace.path("cache") };
  const env = { [strikeVariable]: JSON.stringify(strike) };
  const ran = await runProgram({ job, config, options }, { folder, preload: strikingModule, env });
  const verdict = await judge(ran, { undisturbed, dir, mayLeaveDraft: losesCheckpointer(cell) });
  if (existsSync(strike.doneFile)) return verdict;
  return { ...verdict, outcome: "FAILS", wrong: [...verdict.wrong, "nothing was struck"] };
}

function standsBeforeSteps({ phase, fault }: Cell): boolean {
  return phase.name === "spawn" && (fault.name === "hang" || fault.name === "SIGSTOP");
}

function losesCheckpointer({ phase, fault }: Cell): boolean {
  return phase.actor === "checkpointer" && fault.name !== "refuse" && fault.name !== "block";
}
