// Measures a message between actors beside a plain postMessage between the same threads in the same minute.
//
//   npm run bench -- messages [PART...]     parts: round-trips throughput tensor-refs same-thread life processes
//
// Each figure comes twice where `taskset` exists: with the threads spread over the cores, and pinned to one. Waking a
// thread that sleeps on another core takes far longer than the message, and where threads land is chance: judge round
// trips by the pinned figures, throughput by both.
// Every round measures the plain loop and ours in turn, so that what else the machine does falls on both. Counts are
// verified at the receiver before the clock is read. Judge by the ratios; the absolute figures are this machine's.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "../scripts/arguments.mjs";
import { machine } from "./measure/machine.ts";
import { measureLife } from "./messages/life.ts";
import { measureProcesses } from "./messages/processes.ts";
import { measureRoundTrips } from "./messages/round-trips.ts";
import { measureSameThread } from "./messages/same-thread.ts";
import { measureTensorRefs } from "./messages/tensor-refs.ts";
import { measureThroughput } from "./messages/throughput.ts";

const script = fileURLToPath(import.meta.url);
const parts: Record<string, () => Promise<void>> = {
  "round-trips": measureRoundTrips,
  throughput: measureThroughput,
  "tensor-refs": measureTensorRefs,
  "same-thread": measureSameThread,
  life: measureLife,
  processes: measureProcesses,
};

const usage = `
usage: npm run bench -- messages [PART...]

Measures all parts, or those that are named: ${Object.keys(parts).join(", ")}
  --measure  once, where the threads are: what each of the two passes starts`;
const options = { measure: { type: "boolean" } } as const;
const { positionals: asked, values } = readArguments(usage, options, Number.POSITIVE_INFINITY);
const unknown = asked.find((name) => !Object.hasOwn(parts, name));
if (unknown !== undefined) refuse(usage, "a part", unknown);
const chosen = asked.length === 0 ? Object.keys(parts) : asked;

if (values.measure === true) {
  for (const name of chosen) await parts[name]?.();
} else {
  console.log(machine());
  console.log("median of the rounds [least to most]\n\nspread over the cores");
  run([process.execPath, script, "--measure", ...chosen]);
  if (spawnSync("taskset", ["-V"]).error === undefined) {
    console.log("\npinned to one core");
    run(["taskset", "-c", "0", process.execPath, script, "--measure", ...chosen]);
  }
}

function run([command = "", ...args]: readonly string[]): void {
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
