// npm run chaos -- PART...: disturbs what must survive, for as long as is asked for, and prints what became of it.
import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { describeCollective } from "../../src/events/index.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";
import { Chance } from "./chance.ts";
import { type CycleReport, killPrograms, stopRuns } from "./cycles.ts";
import { damageEverywhere } from "./damage.ts";
import type { Placement } from "./faults.ts";
import { fuzz as fuzzTarget } from "./fuzz/fuzz.ts";
import { fuzzingCompiler, fuzzNative } from "./fuzz/native.ts";
import { openTargets } from "./fuzz/targets.ts";
import { type Hang, hangOnce } from "./hang.ts";
import { cutPower } from "./power/power.ts";
import { canRecord } from "./power/record.ts";
import {
  canStarve,
  failWhileTraining,
  injectEverywhere,
  killAtRandom,
  type SavesReport,
  starveWhileTraining,
} from "./saves.ts";
import { trainUnderFaults, undisturbedLosses } from "./training.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** How long training and fuzzing take, each. */
    minutes: { type: "string", default: "30" },
    /** Mean time between two faults of a training run, in seconds. */
    mtbf: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    /** thread or process; both, one after the other, unless told. */
    placement: { type: "string" },
    /** Programs that are started and killed, and runs that are started and stopped. */
    cycles: { type: "string", default: "100" },
    /** Part of the name of what is fuzzed; everything unless told. */
    target: { type: "string", default: "" },
    /** Saves that are killed at random moments. */
    kills: { type: "string", default: "1000" },
    verbose: { type: "boolean", default: false },
  },
});
const parts: Readonly<Record<string, () => Promise<boolean>>> = {
  training,
  hangs,
  cycles,
  saves,
  power,
  flips,
  fuzz,
};
const asked = positionals.length === 0 || positionals.includes("all") ? Object.keys(parts) : positionals;
const unknown = asked.filter((name) => !(name in parts));
if (unknown.length > 0)
  throw new Error(`expected ${Object.keys(parts).join(", ")} or all: got ${unknown.join(", ")}`);

const failingCalls = [
  ["mkdir", "ENOSPC"],
  ["pwrite64", "ENOSPC"],
  ["pwrite64", "EIO"],
  ["fsync", "EIO"],
  ["rename", "EIO"],
] as const;

const minutes = Number(values.minutes);
const seed = Number(values.seed);
const stepMs = 50;
using workspace = new Workspace();
say(`seed ${seed} (--seed ${seed} chooses the same faults)`);
let holds = true;
for (const name of asked) holds = ((await parts[name]?.()) ?? false) && holds;
say(holds ? "all of it holds" : "NOT ALL OF IT HOLDS");
process.exitCode = holds ? 0 : 1;

async function training(): Promise<boolean> {
  const placements = (
    values.placement === undefined ? ["thread", "process"] : [values.placement]
  ) as Placement[];
  const steps = Math.max(100, Math.round((minutes * 60_000) / stepMs / placements.length));
  say(`training: ${steps} steps that nothing befalls ...`);
  const undisturbed = await undisturbedLosses(workspace, steps);
  let allHold = true;
  for (const placement of placements) {
    const when = { meanMs: 1000 * Number(values.mtbf) };
    const survived = await trainUnderFaults(workspace, undisturbed, {
      placement,
      seed,
      steps,
      stepMs,
      when,
      saveEverySteps: 20,
      copyEverySteps: 5,
      onFault: (fault, whom) => values.verbose && say(`  ${new Date().toISOString()} ${fault}: ${whom}`),
    });
    const { effective, durationMs, numFaults, recoveriesMs, numOtherLosses, numOpenSaves, error } = survived;
    say(
      `training, a ${placement} for each of 2 ranks: ${steps} steps in ${(durationMs / 60_000).toFixed(1)} min`,
    );
    for (const [fault, count] of numFaults) say(`  ${String(count).padStart(4)} × ${fault}`);
    say(`  effective training time ${(100 * effective).toFixed(2)} % at a fault every ${values.mtbf} s`);
    say(`  ${survived.numRestarts} restarts, ${survived.numLostSteps} steps made again`);
    say(
      `  from fault to next new step: mean ${mean(recoveriesMs).toFixed(0)} ms, worst ${worst(recoveriesMs)} ms`,
    );
    say(`  ${numOtherLosses} losses other than the undisturbed run's, bit for bit`);
    say(`  ${numOpenSaves} saves whose end was not told`);
    if (error !== undefined) say(`  FAILED: ${error.message}`);
    allHold &&= error === undefined && numOtherLosses === 0 && numOpenSaves === 0;
  }
  return allHold;
}

async function hangs(): Promise<boolean> {
  const spread = { steps: 12, atStep: 4, stallMs: 1_000 };
  let allHold = true;
  const ways: readonly [Hang, Placement][] = [
    ["hang", "thread"],
    ["block", "thread"],
    ["hang", "process"],
    ["SIGSTOP", "process"],
  ];
  for (const tp of [1, 2]) {
    const undisturbed = await lossesOf(workspace, { ranks: 2, tp, steps: spread.steps });
    for (const [hang, placement] of ways) {
      const { stalled, awaited, lateMs, losses } = await hangOnce(workspace, hang, placement, {
        ...spread,
        tp,
      });
      const same = losses.join() === undisturbed.join();
      const waiting = awaited?.isWaiting ? `, rank-0 waits${describeCollective(awaited)}` : "";
      say(
        `hangs: ${hang} on a ${placement}, tp ${tp}: ${stalled.actor} named at ${stalled.op?.name} #${stalled.op?.sequence}${describeCollective(stalled.collective)}${waiting}; ${lateMs.toFixed(0)} ms after its time was up; losses ${same ? "the same" : "OTHERS"}`,
      );
      allHold &&= stalled.actor === "rank-1" && same;
    }
  }
  return allHold;
}

async function cycles(): Promise<boolean> {
  const numCycles = Number(values.cycles);
  const chance = new Chance(seed);
  const killed = await killPrograms(workspace, numCycles, chance);
  tellCycles(`cycles: ${numCycles} programs started and killed`, killed);
  say(`  the last process outlived its program by ${killed.worstOutlivedMs.toFixed(0)} ms at most`);
  const stopped = await stopRuns(workspace, numCycles, chance);
  tellCycles(`cycles: ${numCycles} runs started and stopped in one program`, stopped);
  return killed.left.length + stopped.left.length === 0;
}

async function saves(): Promise<boolean> {
  const folder = workspace.path("saves");
  let numWrong = 0;
  const tell = ({ fault, numMet, wrong }: SavesReport): void => {
    if (numMet === 0) return;
    numWrong += wrong.length;
    say(`saves: ${fault}: ${numMet} met it, ${wrong.length} lost, torn, left or told wrongly`);
    for (const each of wrong.slice(0, 3)) say(`    ${each}`);
  };
  if (canRecord) {
    await injectEverywhere(folder, tell);
    const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
    for (const [call, errno] of failingCalls) {
      for (const count of [1, 2, 3])
        tell(await failWhileTraining(workspace, undisturbed, call, errno, count));
    }
  } else say("saves: no strace here, or it is not allowed: no faults injected into system calls");
  if (canStarve) {
    const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
    tell(await starveWhileTraining(workspace, undisturbed));
  } else say("saves: no prlimit here: nobody was left without descriptors");
  tell(await killAtRandom(folder, Number(values.kills), new Chance(seed)));
  return numWrong === 0;
}

async function power(): Promise<boolean> {
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

async function flips(): Promise<boolean> {
  const options = { every: 1, numDataBits: 10_000, chance: new Chance(seed) };
  const sightings = await damageEverywhere(workspace.path("damaged"), options);
  say("flips: a checkpoint in several files, damaged and read");
  for (const { kind, numTried, missed } of sightings) {
    say(
      `  ${String(numTried - missed.length).padStart(6)} of ${String(numTried).padStart(6)} seen and named: ${kind}`,
    );
    for (const each of missed.slice(0, 3)) say(`    missed: ${each}`);
  }
  return sightings.every(({ missed }) => missed.length === 0);
}

async function fuzz(): Promise<boolean> {
  const compiler = fuzzingCompiler();
  await using targets = await openTargets(workspace.path("fuzz"));
  const asked = targets.all.filter(({ name }) => name.includes(values.target));
  const durationMs =
    (minutes * 60_000) / (asked.length + (compiler === undefined || values.target !== "" ? 0 : 1));
  let numFindings = 0;
  let numAll = 0;
  for (const target of asked) {
    const { numInputs, numKept, numCovered, slowestMs, findings } = await fuzzTarget(
      target,
      new Chance(seed),
      {
        durationMs,
      },
    );
    numAll += numInputs;
    say(
      `fuzz: ${target.name}: ${numInputs} inputs, ${numKept} kept, ${numCovered} blocks and counts covered, slowest ${slowestMs.toFixed(0)} ms, ${findings.length} findings`,
    );
    for (const { input, what } of findings) say(`    ${what}: ${input}`);
    numFindings += findings.length;
  }
  say(`fuzz: ${numAll} inputs in all`);
  if (values.target !== "") return numFindings === 0;
  if (compiler === undefined) say("fuzz: no clang with libFuzzer here: native code is not fuzzed");
  else {
    const folder = workspace.path("native");
    mkdirSync(folder);
    const { numInputs, numCovered, crash } = fuzzNative(compiler, folder, seed, durationMs);
    say(
      `fuzz: native summed files (libFuzzer): ${numInputs} inputs, ${numCovered} edges, ${crash === undefined ? "no" : "ONE"} crash`,
    );
    if (crash !== undefined) say(crash);
    numFindings += crash === undefined ? 0 : 1;
  }
  return numFindings === 0;
}

function tellCycles(what: string, { left }: CycleReport): void {
  say(what);
  say(`  ${left.length} processes, descriptors, segments, ports and files left`);
  for (const each of left) say(`    ${each}`);
}

function mean(numbers: readonly number[]): number {
  return numbers.length === 0 ? 0 : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}

function worst(numbers: readonly number[]): string {
  return Math.max(0, ...numbers).toFixed(0);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
