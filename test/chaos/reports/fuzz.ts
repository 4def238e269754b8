import { mkdirSync } from "node:fs";
import { Chance } from "../chance.ts";
import { fuzz as fuzzTarget } from "../fuzz/fuzz.ts";
import { fuzzingCompiler, fuzzNative } from "../fuzz/native.ts";
import { openTargets } from "../fuzz/targets.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Untrusted bytes: each is taken, or refused with an error of ours. */
export async function reportFuzz({ workspace, seed, minutes, target: part }: ChaosOptions): Promise<boolean> {
  const compiler = fuzzingCompiler();
  await using targets = await openTargets(workspace.path("fuzz"));
  const asked = targets.all.filter(({ name }) => name.includes(part));
  const durationMs = (minutes * 60_000) / (asked.length + (compiler === undefined || part !== "" ? 0 : 1));
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
  if (part !== "") return numFindings === 0;
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
