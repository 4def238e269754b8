import { load } from "../../../bench/measure/machine.ts";
import { median } from "../../../bench/measure/median.ts";
import { atExit } from "../at-exit.ts";
import { Chance } from "../chance.ts";
import { type LiveReport, lateIn, noSessions, REPLACED_MS, strikeSessions } from "../live/live.ts";
import { phases, type Replacement } from "../live/replacements.ts";
import { type ChaosOptions, say } from "./report.ts";

/**
 * Sessions of live models whose ranks, generators and judges are killed at random moments: to the same bits, each call answered
 * and each rollout used once. The summary is printed however it ends.
 */
export async function reportLive({
  workspace,
  seed,
  numSessions,
  isVerbose,
}: ChaosOptions): Promise<boolean> {
  const begin = performance.now();
  const report = noSessions();
  const { wrong } = report;
  let numTold = 0;
  const tell = () => {
    for (const each of wrong.slice(numTold)) say(`    ${each}`);
    numTold = wrong.length;
  };
  const summarize = () => {
    tell();
    const { numKills, numRestarts, numCalls, replacements } = report;
    const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
    say(
      `live: ${report.numSessions} of ${numSessions} sessions, ${numKills} kills, ${numRestarts} restarts, in ${minutes} min`,
    );
    say(`  ${numCalls} calls and rollouts answered once each, as undisturbed, and the same bits at the end`);
    for (const kind of ["ranks", "judge"] as const)
      for (const line of linesOf(
        kind,
        replacements.filter(({ of }) => of === kind),
      ))
        say(`  ${line}`);
    say(`  ${wrong.length} other answers, other bits, sessions that ended otherwise, and things left`);
  };
  const cut = atExit(summarize);
  try {
    await strikeSessions(workspace, {
      numSessions,
      chance: new Chance(seed),
      report,
      onSession: (what) => {
        if (isVerbose)
          say(
            `  ${what}: ${report.numKills} kills so far, ${lateIn(report).length} of ${report.replacements.length} replaced too late`,
          );
        tell();
      },
    });
  } finally {
    cut[Symbol.dispose]();
    summarize();
  }
  return wrong.length === 0 && lateIn(report).length === 0;
}

/** How long replacements of a kind took, and where that went: medians, as the clock has them and of processor time. */
function linesOf(kind: Replacement["of"], replaced: LiveReport["replacements"]): string[] {
  if (replaced.length === 0) return [];
  const took = replaced.map(({ replacedMs }) => replacedMs);
  const late = took.filter((ms) => ms > REPLACED_MS).length;
  const parts = phases.flatMap((phase) => {
    const spent = replaced.flatMap(({ parts }) => parts[phase] ?? []);
    if (spent.length === 0) return [];
    const cpu = spent.flatMap(({ cpuMs }) => cpuMs ?? []);
    const ofProcessor = cpu.length === 0 ? "" : ` (${median(cpu).toFixed(0)})`;
    return [`${phase} ${median(spent.map(({ wallMs }) => wallMs)).toFixed(0)}${ofProcessor}`];
  });
  return [
    `${kind}: ${took.length} replaced, median ${median(took).toFixed(0)} ms, slowest ${Math.max(...took).toFixed(0)} ms; ${late} in more than ${REPLACED_MS} ms (load ${load()})`,
    `  ms of each part, median (processor time): ${parts.join(", ")}`,
    ...replaced
      .filter(({ replacedMs }) => replacedMs > REPLACED_MS)
      .map(
        ({ parts, where }) =>
          `  late in ${where}: ${phases.flatMap((phase) => (parts[phase] === undefined ? [] : `${phase} ${parts[phase].wallMs.toFixed(0)}`)).join(", ")} ms`,
      ),
  ];
}
