// How fast is Troupe beside what people would otherwise run, and in how much memory? Ours and each peer run alone, in
// turn, several rounds, so that every ratio is of one machine in one minute.
//
//   npm run bench -- peers --preset small|gpt2 --python PATH --script PATH [--rounds N]
//   npm run bench -- peers --ours "FLAGS OF BENCH GPT" --peer "COMMAND" [--peer "COMMAND"] [--rounds N]
//
// A command prints one JSON object on its last line, as bench/gpt.ts does: tokens_per_s, step_s, peak_bytes of each process.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { type Contender, presetNames, presetOf } from "./peers/presets.ts";

interface Measured {
  readonly tokensPerSecond: number;
  readonly stepSeconds: number;
  /** Over all processes of the run. */
  readonly peakBytes: number;
}

const { numRounds, ours, peers } = contenders();
const measured = new Map<Contender, Measured[]>([ours, ...peers].map((contender) => [contender, []]));
console.log(
  `${cpus()[0]?.model ?? "?"}, ${cpus().length} cores, Node ${process.version}, ${new Date().toISOString()}`,
);
for (let round = 0; round < numRounds; round++) {
  // Every other round backwards: what warms up or throttles the machine strikes both sides alike.
  const order = round % 2 === 0 ? [ours, ...peers] : [...peers.toReversed(), ours];
  for (const contender of order) {
    const line = await lastLineOf(contender);
    console.log(`${contender.name}, round ${round + 1}: ${line}`);
    measured.get(contender)?.push(parse(contender, line));
  }
}
report();

interface Flags {
  readonly rounds: number;
  readonly preset?: string;
  readonly python?: string;
  readonly script?: string;
  readonly ours?: string;
  readonly peer: readonly string[];
}

function contenders(): { numRounds: number; ours: Contender; peers: readonly Contender[] } {
  const program = new Command("npm run bench -- peers")
    .description("runs Troupe and its peers in turn and prints medians and ratios")
    .addOption(new Option("--preset <name>", "one of the comparisons").choices(presetNames))
    .option("--python <path>", "a Python with torch, for --preset")
    .option("--script <path>", "the PyTorch peer script, for --preset")
    .option("--ours <flags>", "flags of bench gpt, in place of the preset's")
    .option(
      "--peer <command>",
      "one more peer; may be repeated",
      (command: string, given: string[]) => [...given, command],
      [] as string[],
    )
    .option("--rounds <n>", "how often each runs", Number, 5)
    .parse();
  const flags = program.opts<Flags>();
  const { rounds, preset: name, python, script } = flags;
  if (!(Number.isSafeInteger(rounds) && rounds > 0))
    program.error(`expected --rounds of at least 1: got ${rounds}`);
  if (name !== undefined && (python === undefined || script === undefined))
    program.error("expected --python and --script with --preset");
  const preset =
    name === undefined ? undefined : presetOf(name, { python: python ?? "", script: script ?? "" });
  const peers = [
    ...(preset?.peers ?? []),
    ...flags.peer.map((command, index) => ({ name: `peer ${index + 1}`, command })),
  ];
  const ourFlags = flags.ours ?? preset?.ours;
  if (ourFlags === undefined || peers.length === 0) program.error("expected --preset, or --ours and --peer");
  const bench = fileURLToPath(new URL("./gpt.ts", import.meta.url));
  const ours = { name: "troupe", command: `'${process.execPath}' '${bench}' ${ourFlags}` };
  return { numRounds: rounds, ours, peers };
}

async function lastLineOf({ name, command }: Contender): Promise<string> {
  const child = spawn(command, { shell: true, stdio: ["ignore", "pipe", "inherit"] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0)
    throw new Error(`[bench peers] expected ${name} to end with 0: got ${code} from ${command}`);
  return out.trimEnd().split("\n").at(-1) ?? "";
}

function parse({ name }: Contender, line: string): Measured {
  const { tokens_per_s, step_s, peak_bytes } = JSON.parse(line) as {
    tokens_per_s: number;
    step_s: number;
    peak_bytes: readonly number[];
  };
  const peakBytes = peak_bytes.reduce((sum, bytes) => sum + bytes, 0);
  if (!(tokens_per_s > 0 && peakBytes > 0))
    throw new Error(`[bench peers] expected figures of ${name}: got ${line}`);
  return { tokensPerSecond: tokens_per_s, stepSeconds: step_s, peakBytes };
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
    console.log(`  troupe / ${peer.name}: tokens/s ${speed}, peak bytes ${peak}`);
  }
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
