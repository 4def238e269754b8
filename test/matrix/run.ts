// npm run matrix [-- SWITCH] [--device DEVICE]: trains every pair of switches and prints what became of it.
import { readArguments, refuse } from "../../scripts/arguments.mjs";
import { Workspace } from "../fixtures/run-tiny.ts";
import { holds, Matrix, type Outcome } from "./matrix.ts";
import { pairs, switches } from "./switches.ts";

const names = switches.map(({ name }) => name);
const usage = `
usage: npm run matrix [-- SWITCH] [--device DEVICE]

Trains every switch alone and every pair of switches, or those pairs that SWITCH is one of:
${names.join(", ")}

  --device  where they train: sim:0, or sim, spread over all; what they are compared with is the CPU's`;
const { positionals, values } = readArguments(usage, { device: { type: "string" } }, 1);
const [filter] = positionals;
if (filter !== undefined && !names.includes(filter)) refuse(usage, "a switch", filter);

using workspace = new Workspace();
const matrix = new Matrix(workspace, values.device);
const combinations = [...switches.map((each) => [each]), ...pairs()].filter(
  (on) => filter === undefined || on.some(({ name }) => name === filter),
);

const width = 2 + Math.max(...combinations.map((on) => on.map(({ name }) => name).join(" + ").length));
let numBroken = 0;
for (const [index, on] of combinations.entries()) {
  const outcome = await matrix.try(on);
  if (!holds(outcome)) numBroken += 1;
  const place = `${index + 1}/${combinations.length}`.padStart(8);
  process.stdout.write(`${place}  ${outcome.names.join(" + ").padEnd(width)}${describe(outcome)}\n`);
}
process.stdout.write(`${combinations.length - numBroken} of ${combinations.length} combinations hold\n`);
process.exitCode = numBroken === 0 && combinations.length > 0 ? 0 : 1;

function describe({ failure, sameBits, deviationNats, toleranceNats }: Outcome): string {
  if (failure !== undefined) return `FAILED: ${failure}`;
  const bits = sameBits ? "same bits" : "OTHER BITS";
  const far = deviationNats <= toleranceNats ? "" : `  TOO FAR: ${toleranceNats} allowed`;
  return `${bits}  ${deviationNats.toExponential(1)} nats from one rank${far}`;
}
