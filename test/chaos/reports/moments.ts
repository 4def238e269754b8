import { Chance } from "../chance.ts";
import { strikeAtMoments } from "../moments.ts";
import { type ChaosOptions, say } from "./report.ts";

/** `troupe run`, ended at random moments and resumed, again and again: nothing that was reported as saved is lost. */
export async function reportMoments({
  workspace,
  seed,
  numMoments,
  isVerbose,
}: ChaosOptions): Promise<boolean> {
  const begin = performance.now();
  let numSaid = 0;
  const report = await strikeAtMoments(workspace, {
    numMoments,
    chance: new Chance(seed),
    onMoment: (numStruck, what, wrong) => {
      if (isVerbose || numStruck % 20 === 0) say(`  ${numStruck} of ${numMoments}: ${what}`);
      for (const each of wrong.slice(numSaid)) say(`    ${each}`);
      numSaid = wrong.length;
    },
  });
  const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
  const { numStruck, counts, numAcknowledged, numResumed, wrong } = report;
  say(`moments: ${numStruck} of ${numMoments} programs struck at random moments, in ${minutes} min`);
  for (const [what, count] of counts) say(`  ${String(count).padStart(4)} × ${what}`);
  say(`  ${numAcknowledged} programs reported a save, ${numResumed} went on from a checkpoint`);
  say(`  ${wrong.length} saves lost, losses other, programs that ended otherwise, and things left`);
  // Violations after the last moment: at the end of the run, which was left undisturbed.
  for (const each of wrong.slice(numSaid)) say(`    ${each}`);
  return wrong.length === 0;
}
