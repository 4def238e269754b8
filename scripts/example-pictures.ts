// npm run picture:examples [-- NAME…]: runs examples that a script drives, and draws what they print into their folders.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "./arguments.mjs";
import { curvesPicture } from "./run-picture/curves.ts";

/** An example's picture: a panel for each kind of line that it prints, with the number that the line has. */
interface Drawn {
  readonly title: string;
  readonly panels: readonly { readonly title: string; readonly line: RegExp }[];
  /** Rounds between two lines. Default: 1. */
  readonly every?: number;
}

const pictures: Readonly<Record<string, Drawn>> = {
  dpo: {
    title: "DPO on a model's own texts, by which has more vowels",
    panels: [
      { title: "loss, nats", line: /^loss (\d+\.\d+)/gm },
      { title: "% vowels in what it writes, after each round", line: /: (\d+\.\d) % vowels/gm },
    ],
  },
  distill: {
    title: "A student learns from a teacher on its own texts",
    panels: [{ title: "KL(student, teacher), nats a token", line: /(\d+\.\d+) nats/gm }],
    every: 20,
  },
};

const known = Object.keys(pictures);
const usage = `
usage: npm run picture:examples [-- NAME…]

Runs examples (${known.join(", ")}) and draws what they print into their folders`;
const { positionals } = readArguments(usage, {}, known.length);
const unknown = positionals.find((name) => pictures[name] === undefined);
if (unknown !== undefined) refuse(usage, `one of ${known.join(", ")}`, unknown);

for (const name of positionals.length === 0 ? known : positionals) {
  const { title, panels, every = 1 } = pictures[name] as Drawn;
  const path = (file: string) => fileURLToPath(new URL(`../examples/${name}/${file}`, import.meta.url));
  const printed = execFileSync(process.execPath, [path("train.ts")], { encoding: "utf8" });
  const drawn = panels.map((panel) => ({
    title: panel.title,
    curves: [
      {
        name,
        points: [...printed.matchAll(panel.line)].map(([, value], index) => ({
          step: index * every,
          value: Number(value),
        })),
      },
    ],
  }));
  writeFileSync(path("curves.svg"), curvesPicture(title, drawn));
}
