import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { makeFolder } from "../../src/errors/untrusted/index.ts";
import { print, usage } from "../../src/tools/cli/flags.ts";
import { dimensions, sizes } from "./dimensions.ts";
import { htmlReport, picturesOf } from "./html.ts";
import { KeptResults } from "./kept-results.ts";
import { markdownReport } from "./report.ts";
import { type BenchOptions, runBench } from "./run-bench.ts";

/** The flags of `npm run bench -- rapidformer`, with its defaults. */
export interface BenchFlags {
  readonly dimension?: readonly string[] | undefined;
  readonly size?: string;
  readonly windows?: number;
  readonly windowSteps?: number;
  readonly convergence?: number;
  readonly text?: string | undefined;
  readonly peer?: string | undefined;
  readonly out?: string | undefined;
  readonly json?: boolean;
}

export const names: BenchOptions["dimensions"] = [...dimensions.map(({ name }) => name), "convergence"];

/**
 * Measures the tables that the flags ask for, prints the report, and writes it with its pictures.
 * @throws {TroupeError} `USAGE`
 */
export async function measureTables(given: BenchFlags): Promise<void> {
  const flags = { size: "small", windows: 5, windowSteps: 2, convergence: 60, ...given };
  const isSize = (name: string): name is BenchOptions["size"] => Object.hasOwn(sizes, name);
  if (!isSize(flags.size)) throw usage(`--size ${Object.keys(sizes).join(" or ")}`, flags.size, "see --help");
  const asked = flags.dimension ?? names;
  const chosen = names.filter((name) => asked.includes(name));
  const unknown = asked.find((name) => !chosen.some((one) => one === name));
  if (unknown !== undefined) throw usage(`--dimension ${names.join(", ")}`, unknown, "see --help");
  const whole = (name: string, value: number, least: number) => {
    if (!Number.isSafeInteger(value) || value < least)
      throw usage(`${name} of at least ${least}`, `${value}`, "a whole number");
  };
  whole("--windows", flags.windows, 5);
  whole("--window-steps", flags.windowSteps, 1);
  whole("--convergence", flags.convergence, 0);
  const folder = flags.out === undefined ? undefined : resolve(flags.out);
  // Makes the folder first: a folder that cannot be written is reported before the work, not after.
  if (folder !== undefined) makeFolder(folder);
  const result = await runBench({
    dimensions: chosen,
    size: flags.size,
    windows: flags.windows,
    stepsOfWindow: flags.windowSteps,
    convergenceSteps: flags.convergence,
    peer: flags.peer,
    text: flags.text === undefined ? undefined : resolve(flags.text),
    kept: new KeptResults(folder === undefined ? undefined : join(folder, "measured.jsonl")),
    tell: (line) => process.stderr.write(`${line}\n`),
  });
  print(flags.json ? JSON.stringify(result) : markdownReport(result).trimEnd());
  if (folder === undefined) return;
  const pictures = picturesOf(result).map((picture, index) => {
    const name = `picture-${index + 1}.svg`;
    writeFileSync(join(folder, name), picture);
    return name;
  });
  writeFileSync(join(folder, "report.md"), markdownReport(result, pictures));
  writeFileSync(join(folder, "report.html"), htmlReport(result));
  writeFileSync(join(folder, "report.json"), JSON.stringify(result, null, 2));
}
