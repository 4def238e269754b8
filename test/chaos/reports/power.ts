import { cutPower } from "../power/power.ts";
import { canRecord } from "../power/record.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Power cut after each operation of saves: every acknowledged one opens completely. */
export async function reportPower({ workspace }: ChaosOptions): Promise<boolean> {
  if (!canRecord) {
    say("power: no strace here, or it is not allowed: nothing recorded");
    return true;
  }
  let numLost = 0;
  const runs = [
    { keep: "all", steps: [1, 2, 3] },
    { keep: 1, steps: [1, 2, 3, 4] },
    { keep: "all", steps: [1, 2, 2] },
  ] as const;
  for (const [index, run] of runs.entries()) {
    const { numOperations, numStates, lost } = await cutPower(workspace.path(`power-${index}`), {
      ...run,
      every: 1,
    });
    say(
      `power: steps ${run.steps.join(", ")} saved, the last ${run.keep} kept: cut after each of ${numOperations} operations, ${numStates} states of the disk, ${lost.length} with an acknowledged save lost or torn`,
    );
    for (const each of lost.slice(0, 3)) say(`    ${each}`);
    numLost += lost.length;
  }
  return numLost === 0;
}
