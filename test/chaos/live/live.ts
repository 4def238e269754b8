import { mkdirSync } from "node:fs";
import type { Workspace } from "../../fixtures/run-tiny.ts";
import type { Chance } from "../chance.ts";
import { runProgram } from "../run-program.ts";
import type { SessionOrder, SessionTold } from "./session.ts";

/** The program that makes a session. */
const session = new URL("./session.ts", import.meta.url).pathname;

/** The layouts of sessions. */
const layouts = {
  "level 3": { ranks: 2, zero: 3 },
  "split layers": { ranks: 2, tp: 2 },
  stages: { ranks: 2, pp: 2 },
} as const;

/** The result of sessions whose ranks were killed. */
export interface LiveReport {
  numSessions: number;
  numKills: number;
  numRestarts: number;
  /** Calls that were answered, over all sessions. */
  numCalls: number;
  readonly wrong: string[];
}

/** How sessions are struck. */
export interface LiveOptions {
  readonly numSessions: number;
  readonly chance: Chance;
  readonly onSession?: (what: string, report: LiveReport) => void;
}

/**
 * Makes a scripted session of a live model again and again while its actors and their processes are killed at random moments. Each
 * time every call has one answer, that of the undisturbed session, the parameters have its bits, and nothing is left behind.
 */
export async function strikeSessions(
  workspace: Workspace,
  { numSessions, chance, onSession = () => {} }: LiveOptions,
): Promise<LiveReport> {
  const report: LiveReport = { numSessions: 0, numKills: 0, numRestarts: 0, numCalls: 0, wrong: [] };
  const calm = new Map<string, SessionTold>();
  for (let at = 0; at < numSessions; at++) {
    const name = chance.pick(Object.keys(layouts) as (keyof typeof layouts)[]);
    const placement = chance.pick(["thread", "process"] as const);
    const where = `session ${at} (${name}, a ${placement} each)`;
    const order = { layout: layouts[name], placement, seed: chance.below(1e9) };
    const undisturbed =
      calm.get(name) ?? (await make(workspace, `calm ${name}`, { ...order, kills: 0 }, report));
    if (undisturbed === undefined) continue;
    calm.set(name, undisturbed);
    const told = await make(workspace, where, { ...order, kills: 1 + chance.below(4) }, report);
    report.numSessions += 1;
    if (told !== undefined) {
      report.wrong.push(...differences(told, undisturbed).map((each) => `${where}: ${each}`));
      report.numKills += told.numKills;
      report.numRestarts += told.numRestarts;
      report.numCalls += told.answers.length;
    }
    onSession(where, report);
  }
  return report;
}

async function make(
  workspace: Workspace,
  where: string,
  order: Pick<SessionOrder, "layout" | "placement" | "seed" | "kills">,
  report: LiveReport,
): Promise<SessionTold | undefined> {
  const folder = workspace.path(where);
  mkdirSync(folder, { recursive: true });
  const given: SessionOrder = { data: workspace.text, cache: workspace.path("cache"), ...order };
  const { told, ending, left } = await runProgram<SessionTold, SessionOrder>(given, { folder }, session);
  report.wrong.push(...left.map((each) => `${where}: ${each}`));
  if (told === undefined) report.wrong.push(`${where} ended: ${ending}`);
  return told;
}

function differences(told: SessionTold, calm: SessionTold): string[] {
  const others = calm.answers.flatMap((answer, call) =>
    answer === told.answers[call] ? [] : [`call ${call} answered ${told.answers[call]}, not ${answer}`],
  );
  const moved = Object.entries(calm.parameters).flatMap(([name, hash]) =>
    told.parameters[name] === hash ? [] : [`other bits in ${name}`],
  );
  return [...others, ...moved];
}
