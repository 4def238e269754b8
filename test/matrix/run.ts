// npm run matrix [-- SWITCH] [--graph exact] [--device DEVICE] [--shard K/N]: trains every pair of switches and prints what became of it.
// npm run matrix -- --families [FAMILY]: trains every family of models under every parallelism, and writes the docs' table.
// npm run matrix -- --memory [FAMILY]: the planner's peaks beside the ledger's, of every family.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "../../scripts/arguments.mjs";
import { familyNames } from "../fixtures/jobs/family.ts";
import { Workspace } from "../fixtures/run-tiny.ts";
import { isJoined, runJoined } from "../joined/run-joined.ts";
import { type Cell, cellHolds, columns, familiesPage, tryCell } from "./families.ts";
import { holds, Matrix, type Outcome } from "./matrix.ts";
import { memoryColumns, plannedOverMeasured } from "./memory.ts";
import { pairs, type Switch, switches } from "./switches.ts";

const names = switches.map(({ name }) => name);
const usage = `
usage: npm run matrix [-- SWITCH] [--graph exact] [--device DEVICE] [--shard K/N]
       npm run matrix -- --families [FAMILY]
       npm run matrix -- --memory [FAMILY]

Trains every switch alone and every pair of switches, or those pairs that SWITCH is one of:
${names.join(", ")}

  --graph     exact: every row with blocks as programs, compared with the row without
  --device    where they train: sim:0, or sim, spread over all, with the CPU's bits; cuda:0, with its own
  --shard     the K-th, from 1, of N parts of them, as of several machines or of a run by pieces
  --families  trains every family under every parallelism instead, or the one that FAMILY names, and writes
              docs/reference/family-layouts.md where it was all of them: ${familyNames.join(", ")}
  --memory    plans the memory of every family, or of one, and trains it beside: the planned peak over the ledger's`;
const options = {
  graph: { type: "string", default: "off" },
  device: { type: "string" },
  shard: { type: "string", default: "1/1" },
  families: { type: "boolean" },
  memory: { type: "boolean" },
} as const;
const { positionals, values } = readArguments(usage, options, 1);
const [filter] = positionals;
const { device = "cpu", shard, graph } = values;
if (graph !== "off" && graph !== "exact") refuse(usage, "--graph off or exact", graph);
const areFamilies = values.families === true || values.memory === true;
if (areFamilies) {
  if (values.families === values.memory) refuse(usage, "--families or --memory", "both");
  if (values.device !== undefined || shard !== "1/1" || graph !== "off")
    refuse(usage, "families without --graph, --device and --shard", values.device ?? shard);
}
if (filter !== undefined && !(areFamilies ? familyNames : names).includes(filter))
  refuse(usage, areFamilies ? "a family" : "a switch", filter);
const [, part = 0, parts = 0] = (/^(\d+)\/(\d+)$/.exec(shard) ?? []).map(Number);
if (part < 1 || part > parts) refuse(usage, "--shard K/N, K from 1 to N", shard);
if (!isJoined()) process.exit(await runJoined(fileURLToPath(import.meta.url), process.argv.slice(2)));
if (values.families === true) {
  await trainFamilies(filter);
  process.exit();
}
if (values.memory === true) {
  await planFamilies(filter);
  process.exit();
}
using workspace = new Workspace();
const matrix = new Matrix(workspace, values.device);
const asPrograms = switches.filter(({ kind }) => graph === "exact" && kind === "graph");
const withGraph = ({ kind, without = [] }: Switch) => kind !== "graph" && !without.includes("graph exact");
const rows = graph === "off" ? switches : switches.filter(withGraph);
const pure: Switch[][] = [...rows.map((each) => [each]), ...pairs(rows).map((pair) => [...pair])];
const all = pure
  .map((on) => [...on, ...asPrograms])
  .filter((on) => filter === undefined || on.some(({ name }) => name === filter));
const combinations = all.filter((on) => device === "cpu" || on.every(({ isOfHost }) => isOfHost !== true));

const width = 2 + Math.max(...combinations.map((on) => on.map(({ name }) => name).join(" + ").length));
let numBroken = 0;
let numTried = 0;
/** Combinations whose blocks were programs, and those that still recorded in their last step. */
let numReplaying = 0;
let numUnsteady = 0;
// Neighbours are compared with the same runs: each part is a stretch.
const placeOf = (boundary: number) => Math.floor((combinations.length * boundary) / parts);
for (let index = placeOf(part - 1); index < placeOf(part); index += 1) {
  const on = combinations[index] as (typeof combinations)[number];
  numTried += 1;
  const outcome = await matrix.try(on);
  if (!holds(outcome)) numBroken += 1;
  if (outcome.numReplayed > 0) numReplaying += 1;
  if (outcome.numRecordedLast > 0) numUnsteady += 1;
  const place = `${index + 1}/${combinations.length}`.padStart(8);
  process.stdout.write(`${place}  ${outcome.names.join(" + ").padEnd(width)}${describe(outcome)}\n`);
}
process.stdout.write(`${numTried - numBroken} of ${numTried} combinations hold\n`);
if (graph === "exact")
  process.stdout.write(
    `${numReplaying} of them replayed blocks as programs; ${numUnsteady} still recorded in their last step\n`,
  );
process.exitCode = numBroken === 0 && numTried > 0 ? 0 : 1;

function describe(outcome: Outcome): string {
  const { failure, sameBits, deviationNats, toleranceNats, unrecorded, numReplayed, numRecordedLast } =
    outcome;
  if (failure !== undefined) return `FAILED: ${failure}`;
  const bits = sameBits ? "same bits" : "OTHER BITS";
  const far = deviationNats <= toleranceNats ? "" : `  TOO FAR: ${toleranceNats} allowed`;
  const unsteady = numRecordedLast === 0 ? "" : `, ${numRecordedLast} recorded in the last step`;
  const replays = graph === "exact" ? `  ${numReplayed} calls replayed${unsteady}` : "";
  const singly = unrecorded.length === 0 ? "" : `  issued singly: ${unrecorded.join("; ")}`;
  return `${bits}  ${deviationNats.toExponential(1)} nats from one rank${far}${replays}${singly}`;
}

async function trainFamilies(only: string | undefined): Promise<void> {
  using workspace = new Workspace();
  const cells: Cell[] = [];
  for (const family of familyNames.filter((name) => only === undefined || name === only)) {
    for (const column of columns.filter(({ only: families }) => families?.test(family) ?? true)) {
      const cell = await tryCell(workspace, family, column);
      cells.push(cell);
      const { failure, deviationNats } = cell;
      const broken = cellHolds(cell) ? "" : failure === undefined ? "  TOO FAR" : `FAILED: ${failure}`;
      const figure = failure === undefined ? `${deviationNats.toExponential(1)} nats` : "";
      process.stdout.write(`${family} + ${column.name}  ${figure}${broken}\n`);
    }
  }
  const numBroken = cells.filter((cell) => !cellHolds(cell)).length;
  process.stdout.write(`${cells.length - numBroken} of ${cells.length} cells hold\n`);
  process.exitCode = numBroken === 0 ? 0 : 1;
  const page = new URL("../../docs/reference/family-layouts.md", import.meta.url);
  if (only === undefined && numBroken === 0) writeFileSync(page, familiesPage(cells));
}

async function planFamilies(only: string | undefined): Promise<void> {
  using workspace = new Workspace();
  for (const family of familyNames.filter((name) => only === undefined || name === only)) {
    for (const column of memoryColumns) {
      const ratio = await plannedOverMeasured(workspace, family, column);
      const figure = typeof ratio === "number" ? ratio.toFixed(3) : ratio;
      process.stdout.write(`${family} + ${column.name}  planned / measured ${figure}\n`);
    }
  }
}
