import { Chance } from "../chance.ts";
import { type CycleReport, killPrograms, stopRuns } from "../cycles.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Programs that are killed, and runs that are stopped: nothing of them stays. */
export async function reportCycles({ workspace, seed, numCycles }: ChaosOptions): Promise<boolean> {
  const chance = new Chance(seed);
  const killed = await killPrograms(workspace, numCycles, chance);
  tellCycles(`cycles: ${numCycles} programs started and killed`, killed);
  say(`  the last process outlived its program by ${killed.worstOutlivedMs.toFixed(0)} ms at most`);
  const stopped = await stopRuns(workspace, numCycles, chance);
  tellCycles(`cycles: ${numCycles} runs started and stopped in one program`, stopped);
  return killed.left.length + stopped.left.length === 0;
}

function tellCycles(what: string, { left }: CycleReport): void {
  say(what);
  say(`  ${left.length} processes, descriptors, segments, ports and files left`);
  for (const each of left) say(`    ${each}`);
}
