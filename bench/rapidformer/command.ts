import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command, Option } from "commander";
import { makeFolder } from "../../src/errors/untrusted/index.ts";
import { number, print, usage } from "../../src/tools/cli/flags.ts";
import { dimensions, sizes } from "./dimensions.ts";
import { htmlReport, picturesOf } from "./html.ts";
import { KeptResults } from "./kept-results.ts";
import { markdownReport } from "./report.ts";
import { type BenchOptions, runBench } from "./run-bench.ts";

interface BenchFlags {
  readonly dimension: BenchOptions["dimensions"];
  readonly size: BenchOptions["size"];
  readonly windows: number;
  readonly windowSteps: number;
  readonly convergence: number;
  readonly text?: string;
  readonly peer?: string;
  readonly out?: string;
  readonly json: boolean;
}

const names: BenchOptions["dimensions"] = [...dimensions.map(({ name }) => name), "convergence"];

/**
 * Measures the tables that the arguments ask for, prints the report, and writes it with its pictures.
 * @throws {TroupeError} `USAGE`
 */
export async function measureTables(args: readonly string[]): Promise<void> {
  await new Command("npm run bench -- rapidformer")
    .description(
      "measure Rapidformer's tables A to D, compare them with the planner's predictions, and compare what the strategies learn",
    )
    .addOption(
      new Option("--dimension <name...>", "tables, and what strategies learn").choices(names).default(names),
    )
    .addOption(
      new Option("--size <name>", "of the models: small takes minutes on two cores")
        .choices(Object.keys(sizes))
        .default("small"),
    )
    .option("--windows <n>", "measured windows of each row, at least 5", number, 5)
    .option("--window-steps <n>", "steps in a window", number, 2)
    .option("--convergence <steps>", "steps of each convergence run; 0: none", number, 60)
    .option("--text <file>", "text for the convergence runs (default: the package's README)")
    .option(
      "--peer <python>",
      "Python with PyTorch, to measure the same rows in it: gloo, a thread for each rank",
    )
    .option(
      "--out <folder>",
      "write report.html, report.md with pictures, and report.json there; rows already measured there with the same settings are kept",
    )
    .option("--json", "print one JSON object", false)
    .action(bench)
    .parseAsync([...args], { from: "user" });
}

async function bench(flags: BenchFlags): Promise<void> {
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
    dimensions: flags.dimension,
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
