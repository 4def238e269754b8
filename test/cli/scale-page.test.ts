import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { formatBytes } from "../../src/job/events/index.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(new URL("../../docs/internals/scale.md", import.meta.url), "utf8");

/** The table behind each block of commands: a row for each, in their order. */
const rows = [...page.matchAll(/```sh\n([^`]*)```\n\n((?:\|.*\n)+)/g)].flatMap(
  ([, commands = "", table = ""]) => {
    const lines = table.trim().split("\n").slice(2);
    return commands
      .trim()
      .split("\n")
      .map((command, index) => {
        const [, layout = "", ...cells] = (lines[index] ?? "").split("|").map((cell) => cell.trim());
        return [layout, command, cells.slice(0, 6)] as const;
      });
  },
);

function run(command: string): Promise<string> {
  const words = command.split(" ").slice(2);
  return new Promise((resolve, reject) =>
    execFile(process.execPath, ["bin/troupe.mjs", ...words, "--json"], { cwd: root }, (error, out) =>
      error === null ? resolve(out) : reject(error),
    ),
  );
}

const share = (part: number, all: number) => (part === 0 ? "" : `${((100 * part) / all).toFixed(1)} %`);

describe("the tables of the scale page", () => {
  it.each(rows)("are what the command beside them prints: %s", async (_, command, cells) => {
    const { memory, simulation } = JSON.parse(await run(command)) as {
      memory: readonly { peakBytes: number }[];
      simulation: Readonly<Record<string, number>>;
    };
    const { stepS = 0, computeS = 0, tensorParallelS = 0, exposedS = 0, bubbleS = 0 } = simulation;
    const shares = [computeS, tensorParallelS, exposedS, bubbleS].map((part) => share(part, stepS));
    const peak = Math.max(...memory.map(({ peakBytes }) => peakBytes));
    expect(cells).toEqual([`${stepS.toPrecision(3)} s`, ...shares, formatBytes(peak)]);
  });

  it("are seven rows, four of them of 1,024 ranks", () => {
    expect(rows).toHaveLength(7);
    expect(rows.filter(([, command]) => command.includes("--ranks 1024 "))).toHaveLength(4);
  });
});
