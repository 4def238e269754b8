// How fast is Troupe beside what people would otherwise run, and in how much memory? Ours and each peer run alone, in
// turn, several rounds, so that every ratio is of one machine in one minute.
//
//   npm run bench -- peers --preset small|gpt2 --python PATH --script PATH [--graph MODE] [--rounds N]
//   npm run bench -- peers --ours "FLAGS OF BENCH GPT" --peer "COMMAND" [--peer "COMMAND"] [--rounds N]
//
// A command prints one JSON object on its last line, as bench/gpt.ts does: tokens_per_s, step_s, step_min_s, peak_bytes of each process.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { load, machine } from "./measure/machine.ts";
import { type Contender, presetNames, presetOf } from "./peers/presets.ts";

interface Measured {
  readonly tokensPerSecond: number;
  /** In its fastest step. */
  readonly mostTokensPerSecond: number;
  readonly stepSeconds: number;
  /** Over all processes of the run. */
  readonly peakBytes: number;
}

const { numRounds, ours, peers } = contenders();
const measured = new Map<Contender, Measured[]>([ours, ...peers].map((contender) => [contender, []]));
console.log(machine());
for (let round = 0; round < numRounds; round++) {
  // Every other round backwards: what warms up or throttles the machine strikes both sides alike.
  const order = round % 2 === 0 ? [ours, ...peers] : [...peers.toReversed(), ours];
  for (const contender of order) {
    const line = await lastLineOf(contender);
    console.log(`${contender.name}, round ${round + 1}, load ${load()}: ${line}`);
    measured.get(contender)?.push(parse(contender, line));
  }
}
report();

function contenders(): { numRounds: number; ours: Contender; peers: readonly Contender[] } {
  const usage = `
usage: npm run bench -- peers --preset NAME --python PATH --script PATH [--graph MODE] [--rounds N]
       npm run bench -- peers --ours FLAGS --peer COMMAND [--peer COMMAND] [--rounds N]

  --preset NAME   one of the comparisons: ${presetNames.join(" or ")}
  --python PATH   a Python with torch, for --preset
  --script PATH   the PyTorch peer script, for --preset
  --graph MODE    of ours, with --preset: off, exact or fast (off)
  --ours FLAGS    of bench gpt, in place of the preset's
  --peer COMMAND  one more peer; may be repeated
  --rounds N      how often each runs (5)`;
  const text = { type: "string" } as const;
  const { values: flags } = readArguments(usage, {
    preset: text,
    python: text,
    script: text,
    graph: { ...text, default: "off" },
    ours: text,
    peer: { ...text, multiple: true, default: [] },
    rounds: { ...text, default: "5" },
  });
  const { preset: name, python = "", script = "" } = flags;
  if (name !== undefined && !presetNames.includes(name))
    refuse(usage, `--preset ${presetNames.join(" or ")}`, name);
  if (name !== undefined && (python === "" || script === ""))
    refuse(usage, "--python and --script with --preset", "fewer");
  const preset = name === undefined ? undefined : presetOf(name, { python, script });
  const peers = [
    ...(preset?.peers ?? []),
    ...flags.peer.map((command, index) => ({ name: `peer ${index + 1}`, command })),
  ];
  const ourFlags = flags.ours ?? (preset === undefined ? "" : `${preset.ours} --graph ${flags.graph}`);
  if (ourFlags === "" || peers.length === 0) refuse(usage, "--preset, or --ours and --peer", "fewer");
  const bench = fileURLToPath(new URL("./gpt.ts", import.meta.url));
  const ours = { name: "troupe", command: `'${process.execPath}' '${bench}' ${ourFlags}` };
  return { numRounds: countOf(usage, "rounds", flags.rounds), ours, peers };
}

async function lastLineOf({ name, command }: Contender): Promise<string> {
  const child = spawn(command, { shell: true, stdio: ["ignore", "pipe", "inherit"] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0)
    throw new Error(`[bench peers] expected ${name} to end with 0: got ${code} from ${command}`);
  return out.trimEnd().split("\n").at(-1) ?? "";
}

function parse({ name }: Contender, line: string): Measured {
  const { tokens_per_s, step_s, step_min_s, peak_bytes } = JSON.parse(line) as {
    tokens_per_s: number;
    step_s: number;
    step_min_s: number;
    peak_bytes: readonly number[];
  };
  const peakBytes = peak_bytes.reduce((sum, bytes) => sum + bytes, 0);
  if (!(tokens_per_s > 0 && step_min_s > 0 && peakBytes > 0))
    throw new Error(`[bench peers] expected figures of ${name}: got ${line}`);
  const mostTokensPerSecond = (tokens_per_s * step_s) / step_min_s;
  return { tokensPerSecond: tokens_per_s, mostTokensPerSecond, stepSeconds: step_s, peakBytes };
}

function report(): void {
  console.log(`\nmedian (min to max) of ${numRounds} rounds`);
  for (const [{ name }, runs] of measured) {
    const speed = spread(runs.map((run) => run.tokensPerSecond));
    const step = spread(runs.map((run) => run.stepSeconds));
    const peak = spread(runs.map((run) => run.peakBytes / 1e9));
    console.log(`  ${name.padEnd(8)} ${speed} tokens/s, ${step} s a step, peak ${peak} GB`);
  }
  for (const peer of peers) {
    const speed = spread(ratios(peer, (run) => run.tokensPerSecond));
    const peak = spread(ratios(peer, (run) => run.peakBytes));
    const fastest = (fastestOf(ours) / fastestOf(peer)).toPrecision(3);
    console.log(
      `  troupe / ${peer.name}: tokens/s ${speed}, by fastest steps ${fastest}, peak bytes ${peak}`,
    );
  }
}

/** Tokens a second of the fastest step of all rounds. */
function fastestOf(contender: Contender): number {
  return Math.max(...(measured.get(contender) ?? []).map((run) => run.mostTokensPerSecond));
}

/** Ours to a peer's, round by round. */
function ratios(peer: Contender, figure: (run: Measured) => number): number[] {
  const theirs = measured.get(peer) ?? [];
  return (measured.get(ours) ?? []).map((run, round) => figure(run) / figure(theirs[round] as Measured));
}

/** Median and range, three digits. */
function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  const median = (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2;
  const print = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  return `${print(median)} (${print(at(0))} to ${print(at(sorted.length - 1))})`;
}
