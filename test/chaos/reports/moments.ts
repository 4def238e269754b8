import { Chance } from "../chance.ts";
import { strikeAtMoments } from "../moments.ts";
import { type ChaosOptions, say } from "./report.ts";

/** `troupe run`, ended at random moments and gone on with, again and again: nothing that was told as saved is lost. */
export async function reportMoments({
  workspace,
  seed,
  numMoments,
  isVerbose,
}: ChaosOptions): Promise<boolean> {
  const begin = performance.now();
  const report = await strikeAtMoments(workspace, {
    numMoments,
    chance: new Chance(seed),
    onMoment: (numStruck, what, numWrong) => {
      if (isVerbose || numStruck % 20 === 0)
        say(`  ${numStruck} of ${numMoments}, ${numWrong} wrong: ${what}`);
    },
  });
  const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
  const { numStruck, counts, numAcknowledged, numResumed, wrong } = report;
  say(`moments: ${numStruck} of ${numMoments} programs struck at random moments, in ${minutes} min`);
  for (const [what, count] of counts) say(`  ${String(count).padStart(4)} × ${what}`);
  say(`  ${numAcknowledged} programs told a save, ${numResumed} went on from a checkpoint`);
  say(`  ${wrong.length} saves lost, losses other, programs that ended otherwise, and things left`);
  for (const each of wrong) say(`    ${each}`);
  return wrong.length === 0;
}
