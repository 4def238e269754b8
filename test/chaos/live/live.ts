import { mkdirSync } from "node:fs";
import type { Workspace } from "../../fixtures/run-tiny.ts";
import { isJoined, joinInto } from "../../joined/run-joined.ts";
import type { Chance } from "../chance.ts";
import { runProgram } from "../run-program.ts";
import type { Replacement } from "./replacements.ts";
import type { SessionEnd, SessionOrder } from "./strikes.ts";

/** The programs that make sessions, by their kind. */
const sessions = {
  GRPO: new URL("./grpo-session.ts", import.meta.url).pathname,
  calls: new URL("./session.ts", import.meta.url).pathname,
} as const;

/** Every second session is one of GRPO. */
const kinds = Object.keys(sessions) as (keyof typeof sessions)[];

/** The layouts of sessions. */
const layouts = {
  "one rank": { ranks: 1 },
  replicas: { ranks: 2, zero: 0 },
  "level 3": { ranks: 2, zero: 3 },
  "split layers": { ranks: 2, tp: 2 },
  stages: { ranks: 2, pp: 2 },
} as const;

/** The result of sessions whose actors were killed. */
export interface LiveReport {
  numSessions: number;
  numKills: number;
  numRestarts: number;
  /** Calls that were answered, over all sessions. */
  numCalls: number;
  /** Each with its session. */
  readonly replacements: (Replacement & { readonly where: string })[];
  readonly wrong: string[];
}

/** Within this time, in ms, a killed actor is to have a successor that can work. */
export const REPLACED_MS = 1_000;

/** Replacements that took longer than {@link REPLACED_MS}. */
export const lateIn = ({ replacements }: LiveReport) =>
  replacements.filter(({ replacedMs }) => replacedMs > REPLACED_MS);

/** A report of no session. */
export const noSessions = (): LiveReport => ({
  numSessions: 0,
  numKills: 0,
  numRestarts: 0,
  numCalls: 0,
  replacements: [],
  wrong: [],
});

/** How sessions are struck. */
export interface LiveOptions {
  readonly numSessions: number;
  readonly chance: Chance;
  /** Grows with each session. */
  readonly report: LiveReport;
  readonly onSession: (what: string) => void;
}

/**
 * Makes scripted sessions of live models, every second one of GRPO, while their actors and processes are killed at random moments. Each
 * time every call has one answer, that of the undisturbed session, every rollout is used once, the parameters have its bits, and
 * nothing is left behind.
 */
export async function strikeSessions(
  workspace: Workspace,
  { numSessions, chance, report, onSession }: LiveOptions,
): Promise<void> {
  const calm = new Map<string, SessionEnd>();
  // As the package has them: a thread of a clone loads hundreds of modules, one by one.
  const env = isJoined() ? {} : joinInto(workspace.path("joined"));
  for (let at = 0; at < numSessions; at++) {
    const kind = kinds[at % kinds.length] as (typeof kinds)[number];
    // By turns, so that each layout comes to its share.
    const name = layoutNames[
      Math.floor(at / kinds.length) % layoutNames.length
    ] as (typeof layoutNames)[number];
    const placement = chance.pick(["thread", "process"] as const);
    const where = `session ${at} (${kind}, ${name}, a ${placement} each)`;
    const order = { layout: layouts[name], placement, seed: chance.below(1e9) };
    const key = `calm ${kind} ${name}`;
    const undisturbed =
      calm.get(key) ?? (await make({ workspace, where: key, env }, kind, { ...order, kills: 0 }, report));
    if (undisturbed === undefined) continue;
    calm.set(key, undisturbed);
    const struck = { ...order, kills: 1 + chance.below(4) };
    const ended = await make({ workspace, where, env }, kind, struck, report);
    report.numSessions += 1;
    if (ended !== undefined) {
      report.wrong.push(...differences(ended, undisturbed).map((each) => `${where}: ${each}`));
      report.numKills += ended.numKills;
      report.numRestarts += ended.numRestarts;
      report.numCalls += ended.answers.length;
      report.replacements.push(...ended.replacements.map((each) => ({ ...each, where })));
    }
    onSession(where);
  }
}

const layoutNames = Object.keys(layouts) as (keyof typeof layouts)[];

/** The place of a session's program. */
interface Surroundings {
  readonly workspace: Workspace;
  readonly where: string;
  readonly env: NodeJS.ProcessEnv;
}

async function make(
  { workspace, where, env }: Surroundings,
  kind: keyof typeof sessions,
  order: Pick<SessionOrder, "layout" | "placement" | "seed" | "kills">,
  report: LiveReport,
): Promise<SessionEnd | undefined> {
  const folder = workspace.path(where);
  mkdirSync(folder, { recursive: true });
  const given: SessionOrder = { data: workspace.text, cache: workspace.path("cache"), ...order };
  const {
    answer: ended,
    ending,
    output,
    left,
  } = await runProgram<SessionEnd, SessionOrder>(given, { folder, env }, sessions[kind]);
  report.wrong.push(...left.map((each) => `${where}: ${each}`));
  // Complete: the cause of a rare end is often said first, and long before it.
  if (ended === undefined)
    report.wrong.push(
      `${where} ended: ${ending}\nits order: ${JSON.stringify(given)}\nits output:\n${output}`,
    );
  return ended;
}

function differences(ended: SessionEnd, calm: SessionEnd): string[] {
  const others = calm.answers.flatMap((answer, call) =>
    answer === ended.answers[call] ? [] : [`call ${call} answered ${ended.answers[call]}, not ${answer}`],
  );
  const moved = Object.entries(calm.parameters).flatMap(([name, hash]) =>
    ended.parameters[name] === hash ? [] : [`other bits in ${name}`],
  );
  const more = ended.answers.length - calm.answers.length;
  return [...others, ...moved, ...(more > 0 ? [`${more} answers too many`] : [])];
}
