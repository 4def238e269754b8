import { Chance } from "../chance.ts";
import { strikeSessions } from "../live/live.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Sessions of a live model whose ranks are killed at random moments: to the same bits, each call answered once. */
export async function reportLive({
  workspace,
  seed,
  numSessions,
  isVerbose,
}: ChaosOptions): Promise<boolean> {
  const begin = performance.now();
  let numTold = 0;
  const report = await strikeSessions(workspace, {
    numSessions,
    chance: new Chance(seed),
    onSession: (what, { numKills, wrong }) => {
      if (isVerbose) say(`  ${what}: ${numKills} kills so far`);
      for (const each of wrong.slice(numTold)) say(`    ${each}`);
      numTold = wrong.length;
    },
  });
  const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
  const { numKills, numRestarts, numCalls, wrong } = report;
  say(`live: ${report.numSessions} sessions, ${numKills} kills, ${numRestarts} restarts, in ${minutes} min`);
  say(`  ${numCalls} calls answered once each, as undisturbed, and the same bits at the end`);
  say(`  ${wrong.length} other answers, other bits, sessions that ended otherwise, and things left`);
  return wrong.length === 0;
}
