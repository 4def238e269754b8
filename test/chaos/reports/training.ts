import { trainUnderFaults, undisturbedLosses } from "../training.ts";
import { type ChaosOptions, say } from "./report.ts";

/** How long a step is made to take. */
const STEP_MS = 50;

/** Runs that are struck at random: every loss is the undisturbed run's. */
export async function reportTraining(options: ChaosOptions): Promise<boolean> {
  const { workspace, seed, minutes, mtbfSeconds, placements, isVerbose } = options;
  const steps = Math.max(100, Math.round((minutes * 60_000) / STEP_MS / placements.length));
  say(`training: ${steps} steps that nothing befalls ...`);
  const undisturbed = await undisturbedLosses(workspace, steps);
  let allHold = true;
  for (const placement of placements) {
    const when = { meanMs: 1000 * mtbfSeconds };
    const survived = await trainUnderFaults(workspace, undisturbed, {
      placement,
      seed,
      steps,
      stepMs: STEP_MS,
      when,
      saveEverySteps: 20,
      copyEverySteps: 5,
      onFault: (fault, whom) => isVerbose && say(`  ${new Date().toISOString()} ${fault}: ${whom}`),
    });
    const { effective, durationMs, numFaults, recoveriesMs, numOtherLosses, numOpenSaves, error } = survived;
    say(
      `training, a ${placement} for each of 2 ranks: ${steps} steps in ${(durationMs / 60_000).toFixed(1)} min`,
    );
    for (const [fault, count] of numFaults) say(`  ${String(count).padStart(4)} × ${fault}`);
    say(`  effective training time ${(100 * effective).toFixed(2)} % at a fault every ${mtbfSeconds} s`);
    say(`  ${survived.numRestarts} restarts, ${survived.numLostSteps} steps made again`);
    say(
      `  from fault to next new step: mean ${mean(recoveriesMs).toFixed(0)} ms, worst ${worst(recoveriesMs)} ms`,
    );
    say(`  ${numOtherLosses} losses other than the undisturbed run's, bit for bit`);
    say(`  ${numOpenSaves} saves whose end was not reported`);
    if (error !== undefined) say(`  FAILED: ${error.message}`);
    allHold &&= error === undefined && numOtherLosses === 0 && numOpenSaves === 0;
  }
  return allHold;
}

function mean(numbers: readonly number[]): number {
  return numbers.length === 0 ? 0 : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}

function worst(numbers: readonly number[]): string {
  return Math.max(0, ...numbers).toFixed(0);
}
