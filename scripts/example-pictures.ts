// npm run picture:examples [-- NAME…]: runs the examples of post-training, prints how long each takes and what it has come to, and draws
// what it prints into its folder.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { load } from "../bench/measure/machine.ts";
import { processorMs } from "../bench/measure/processor-time.ts";
import { readArguments, refuse } from "./arguments.mjs";
import { curvesPicture } from "./run-picture/curves.ts";

/** An example, and its picture: a panel for each kind of line that it prints, with the number that the line has. Without panels none is drawn. */
interface Example {
  readonly title: string;
  readonly panels: readonly { readonly title: string; readonly line: RegExp }[];
  /** Rounds between two lines. Default: 1. */
  readonly every?: number;
  /** Arguments that the example is run with, a curve for each. Default: one run without. */
  readonly seeds?: readonly number[];
  /** Its last match says what it has come to. */
  readonly result: RegExp;
  /** The commands of one run, whose files go to `folder`. Default: its `train.ts`. */
  readonly commands?: (folder: string) => readonly (readonly string[])[];
}

const examples: Readonly<Record<string, Example>> = {
  grpo: {
    title: "GRPO: three digits sorted, by a judge that says right or wrong",
    panels: [
      { title: "% right, in each round and at the end of held-out problems", line: /: (\d+\.\d) % right/gm },
    ],
    every: 50,
    seeds: [0, 1, 2],
    result: /^held out: .*$/gm,
  },
  dpo: {
    title: "DPO on a model's own texts, by which has more vowels",
    panels: [
      { title: "loss, nats", line: /^loss (\d+\.\d+)/gm },
      { title: "% vowels in what it writes, after each round", line: /: (\d+\.\d) % vowels/gm },
    ],
    result: /.* % vowels/g,
  },
  distill: {
    title: "A student learns from a teacher on its own texts",
    panels: [{ title: "KL(student, teacher), nats a token", line: /(\d+\.\d+) nats/gm }],
    every: 20,
    result: /.* nats/g,
  },
  chat: {
    title: "A small LLaMA learns to answer from chats",
    panels: [],
    result: /"perplexity":\d+\.\d{3}/g,
    commands: (folder) => [
      ["examples/chat/prepare.ts", folder],
      ["bin/troupe.mjs", "run", "examples/chat/job.ts", "--ranks", "2", "--json", "--set", `data=${folder}`],
    ],
  },
};

const known = Object.keys(examples);
const usage = `
usage: npm run picture:examples [-- NAME…]

Runs examples (${known.join(", ")}), prints how long each takes and its result, and draws what they print into their folders`;
const { positionals } = readArguments(usage, {}, known.length);
const unknown = positionals.find((name) => examples[name] === undefined);
if (unknown !== undefined) refuse(usage, `one of ${known.join(", ")}`, unknown);

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs an example once, and says how long that took. @returns what it prints */
function run(name: string, seed: number | undefined): string {
  const { commands = () => [[`examples/${name}/train.ts`]], result } = examples[name] as Example;
  const folder = mkdtempSync(join(tmpdir(), "troupe-example-"));
  const [begin, beginCpu] = [performance.now(), processorMs()];
  try {
    const printed = commands(folder).map((command) => {
      const args = [...command, ...(seed === undefined ? [] : [`${seed}`])];
      return execFileSync(process.execPath, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 });
    });
    const text = printed.join("");
    const [took, ofProcessor] = [performance.now() - begin, processorMs() - beginCpu].map((ms) => ms / 1000);
    console.log(
      `${name}${seed === undefined ? "" : `, seed ${seed}`}: ${took?.toFixed(0)} s (${ofProcessor?.toFixed(0)} s of processor time, load ${load()}); ${text.match(result)?.at(-1)}`,
    );
    return text;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const name of positionals.length === 0 ? known : positionals) {
  const { title, panels, every = 1, seeds = [undefined] } = examples[name] as Example;
  const printed = seeds.map((seed) => ({ seed, text: run(name, seed) }));
  const drawn = panels.map((panel) => ({
    title: panel.title,
    curves: printed.map(({ seed, text }) => ({
      name: seed === undefined ? name : `seed ${seed}`,
      points: [...text.matchAll(panel.line)].map(([, value], index) => ({
        step: index * every,
        value: Number(value),
      })),
    })),
  }));
  if (drawn.length > 0)
    writeFileSync(join(root, "examples", name, "curves.svg"), curvesPicture(title, drawn));
}
