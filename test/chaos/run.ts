// npm run chaos -- PART: disturbs what must survive, for as long as is asked for, and prints what became of it.
import { parseArgs } from "node:util";
import { Workspace } from "../fixtures/run-tiny.ts";
import { Chance } from "./chance.ts";
import { type CycleReport, killPrograms, stopRuns } from "./cycles.ts";
import type { Placement } from "./faults.ts";
import { trainUnderFaults, undisturbedLosses } from "./training.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "30" },
    /** Mean time between two faults, in seconds. */
    mtbf: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    placement: { type: "string" },
    /** Programs that are started and killed, and runs that are started and stopped. */
    cycles: { type: "string", default: "100" },
    verbose: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const placements = (
  values.placement === undefined ? ["thread", "process"] : [values.placement]
) as Placement[];
const stepMs = 50;
using workspace = new Workspace();

const parts: Readonly<Record<string, () => Promise<boolean>>> = { training, cycles };

let holds = true;
say(`seed ${seed} (--seed ${seed} chooses the same faults)`);
const asked = positionals[0] ?? "all";
for (const [name, part] of Object.entries(parts)) {
  if (asked === name || asked === "all") holds = (await part()) && holds;
}
process.exitCode = holds ? 0 : 1;

async function training(): Promise<boolean> {
  const steps = Math.max(100, Math.round((minutes * 60_000) / stepMs / placements.length));
  say(`training: ${steps} steps undisturbed ...`);
  const undisturbed = await undisturbedLosses(workspace, steps);
  let allHold = true;
  for (const placement of placements) {
    const survived = await trainUnderFaults(workspace, undisturbed, {
      placement,
      seed,
      steps,
      stepMs,
      when: { meanMs: 1000 * Number(values.mtbf) },
      saveEverySteps: 20,
      ...(values.verbose
        ? {
            onFault: (fault, whom) => say(`  ${new Date().toISOString()} ${fault}: ${whom}`),
            onEvent: (event) => {
              if (!/^(step|checkpoint|message)/.test(event.kind))
                say(`  ${new Date().toISOString()} ${JSON.stringify(event)}`);
            },
          }
        : {}),
    });
    const { effective, durationMs, numFaults, recoveriesMs, error } = survived;
    say(`training, ranks on a ${placement} each: ${steps} steps in ${(durationMs / 60_000).toFixed(1)} min`);
    for (const [fault, count] of numFaults) say(`  ${String(count).padStart(4)}  ${fault}`);
    say(`  effective training time ${(100 * effective).toFixed(2)} %`);
    say(`  ${survived.numRestarts} restarts, ${survived.numLostSteps} steps made again`);
    say(
      `  from fault to next new step: mean ${mean(recoveriesMs).toFixed(0)} ms, worst ${Math.max(0, ...recoveriesMs).toFixed(0)} ms`,
    );
    say(`  ${survived.numOtherLosses} losses other than the undisturbed run's`);
    if (error !== undefined) say(`  FAILED: ${error.message}`);
    allHold &&= error === undefined && survived.numOtherLosses === 0;
  }
  return allHold;
}

async function cycles(): Promise<boolean> {
  const numCycles = Number(values.cycles);
  const chance = new Chance(seed);
  const killed = await killPrograms(workspace, numCycles, chance);
  tell(`cycles: ${numCycles} programs started and killed`, killed);
  say(`  the last process outlived its program by ${killed.worstOutlivedMs.toFixed(0)} ms at most`);
  const stopped = await stopRuns(workspace, numCycles, chance);
  tell(`cycles: ${numCycles} runs started and stopped in one program`, stopped);
  return killed.left.length + stopped.left.length === 0;
}

function tell(what: string, { left }: CycleReport): void {
  say(what);
  say(`  ${left.length} processes, descriptors, segments, ports and files left`);
  for (const each of left) say(`    ${each}`);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
