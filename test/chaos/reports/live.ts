import { loadavg } from "node:os";
import { atExit } from "../at-exit.ts";
import { Chance } from "../chance.ts";
import { noSessions, REPLACED_MS, strikeSessions } from "../live/live.ts";
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
    const { numKills, numRestarts, numCalls, numReplaced, numLate, slowestMs } = report;
    const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
    const load = loadavg()[0]?.toFixed(1);
    say(
      `live: ${report.numSessions} of ${numSessions} sessions, ${numKills} kills, ${numRestarts} restarts, in ${minutes} min`,
    );
    say(`  ${numCalls} calls and rollouts answered once each, as undisturbed, and the same bits at the end`);
    say(
      `  ${numReplaced} killed actors replaced, the slowest in ${slowestMs.toFixed(0)} ms; ${numLate} in more than ${REPLACED_MS} ms (load ${load})`,
    );
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
            `  ${what}: ${report.numKills} kills so far, the slowest replaced in ${report.slowestMs.toFixed(0)} ms`,
          );
        tell();
      },
    });
  } finally {
    cut[Symbol.dispose]();
    summarize();
  }
  return wrong.length === 0 && report.numLate === 0;
}
