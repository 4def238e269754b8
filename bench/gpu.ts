// Training on one GPU beside stock PyTorch there: eager, compiled and FSDP2, by turns in one sitting.
//
//   npm run bench -- gpu [--python python3] [--models gpt2,bert,gpt-1.3b] [--peers eager,compile,fsdp2] [--rounds 2]
//   npm run bench -- gpu --ranks 2 --peers nccl   # several GPUs: threads that copy, beside processes that talk by NCCL
//
// Prints each run's line and a table of ratios: tokens/s and the peak of the bytes that tensors asked for.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";

/** A comparison: what both sides train. GPT-2 124M, BERT base at 512 tokens, GPT of 1.3 billion parameters. */
const cases = {
  gpt2: { batch: 16, sequence: 1024 },
  bert: { batch: 32, sequence: 512 },
  "gpt-1.3b": { batch: 8, sequence: 1024 },
} as const;
type Model = keyof typeof cases;

interface Line {
  readonly tokens_per_s: number;
  readonly peak_bytes: number;
}

/** Troupe's own runs to compare with, and what they are given: processes that communicate by NCCL, and blocks as programs. */
const ownSides: Readonly<Record<string, readonly string[]>> = {
  troupe: [],
  nccl: ["--carrier", "nccl"],
  exact: ["--graph", "exact"],
};
/** The runs to compare with: PyTorch's modes (peer.py), and Troupe's. */
const sides = ["eager", "compile", "fsdp2", "nccl", "exact"];

const usage = `
usage: npm run bench -- gpu [OPTIONS]

  --models NAMES  of ${Object.keys(cases).join(", ")} (all)
  --peers NAMES   of ${sides.join(", ")} (eager,compile,fsdp2)
  --rounds N      by turns (2)
  --steps N       of each run (20)
  --ranks N       GPUs (1)
  --python PATH   a Python with torch (python3)`;
const { values: flags } = readArguments(usage, {
  python: { type: "string", default: "python3" },
  models: { type: "string", default: Object.keys(cases).join() },
  peers: { type: "string", default: "eager,compile,fsdp2" },
  rounds: { type: "string", default: "2" },
  steps: { type: "string", default: "20" },
  ranks: { type: "string", default: "1" },
});
const named = (option: "models" | "peers", all: readonly string[]) => {
  const names = flags[option].split(",").filter((name) => name !== "");
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) refuse(usage, `--${option} of ${all.join(", ")}`, unknown.join(", "));
  return names;
};
const models = named("models", Object.keys(cases)) as Model[];
const peers = named("peers", sides);
const numRounds = countOf(usage, "rounds", flags.rounds);
for (const option of ["steps", "ranks"] as const) countOf(usage, option, flags[option]);
const measured = new Map<string, Line[]>();
for (const model of models) {
  for (let round = 0; round < numRounds; round++) {
    const inTurn = ["troupe", ...peers];
    // Every other round backwards: what warms up or throttles the machine strikes all sides alike.
    for (const side of round % 2 === 0 ? inTurn : inTurn.toReversed()) {
      const line = await lineOf(side, model);
      console.log(`${model}, ${side}, round ${round + 1}: ${line}`);
      const key = `${model} ${side}`;
      measured.set(key, [...(measured.get(key) ?? []), JSON.parse(line) as Line]);
    }
  }
}
report();

async function lineOf(side: string, model: Model): Promise<string> {
  const { batch, sequence } = cases[model];
  const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  const work = ["--model", model, "--batch", `${batch}`, "--sequence", `${sequence}`, "--steps", flags.steps];
  const spread = flags.ranks === "1" ? [] : ["--ranks", flags.ranks, "--device", "cuda"];
  const [command, ...args] =
    ownSides[side] !== undefined
      ? [process.execPath, path("./gpu/train.ts"), ...work, ...spread, ...ownSides[side]]
      : [flags.python, path("./gpu/peer.py"), "--mode", side, ...work];
  const child = spawn(command as string, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0) throw new Error(`[bench gpu] expected ${side} to end with 0: got ${code}`);
  return output.trimEnd().split("\n").at(-1) ?? "";
}

function report(): void {
  const best = (model: Model, side: string, figure: (line: Line) => number) =>
    (measured.get(`${model} ${side}`) ?? []).map(figure);
  console.log("\n| model | beside | tokens/s, ours | theirs | ratio | peak, ours | theirs | ratio |");
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const model of models) {
    for (const peer of peers) {
      // The fastest of each side: noise only ever adds time.
      const [ours, theirs] = ["troupe", peer].map((side) =>
        Math.max(...best(model, side, (l) => l.tokens_per_s)),
      );
      const [bytes, theirBytes] = ["troupe", peer].map((side) =>
        Math.min(...best(model, side, (l) => l.peak_bytes)),
      );
      const row = [
        model,
        peer,
        ours,
        theirs,
        ratio(ours, theirs),
        gb(bytes),
        gb(theirBytes),
        ratio(bytes, theirBytes),
      ];
      console.log(`| ${row.join(" | ")} |`);
    }
  }
}

function ratio(ours = Number.NaN, theirs = Number.NaN): string {
  return (ours / theirs).toFixed(2);
}

function gb(bytes = Number.NaN): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
