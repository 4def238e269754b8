// npm run bench -- repeated: the resident memory of one program that makes many runs, one after the other, each with checkpoints; and
// by how much it has grown since the tenth. Exits with 1 where that is more than the limit.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { Runtime } from "../src/entries/index.ts";

const usage = `
usage: npm run bench -- repeated [OPTIONS]

  --placement NAME  process or thread (process)
  --runs N          more than 10 (40)
  --ranks N         (2)
  --steps N         of each run (4)
  --limit N         MB that may have been added since the tenth run (20)`;
const text = { type: "string" } as const;
const { values } = readArguments(usage, {
  placement: { ...text, default: "process" },
  runs: { ...text, default: "40" },
  ranks: { ...text, default: "2" },
  steps: { ...text, default: "4" },
  limit: { ...text, default: "20" },
});
const { placement } = values;
if (placement !== "process" && placement !== "thread")
  refuse(usage, "--placement process or thread", placement);
const [numRuns, ranks, steps, limitMb] = [
  countOf(usage, "runs", values.runs),
  countOf(usage, "ranks", values.ranks),
  countOf(usage, "steps", values.steps),
  countOf(usage, "limit", values.limit),
];
/** By then everything is loaded that a run needs, and compiled that it repeats. */
const SETTLED = 10;
if (numRuns <= SETTLED) refuse(usage, `--runs of more than ${SETTLED}`, values.runs);
const example = fileURLToPath(new URL("../examples/hello/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
const residentMb = () => process.memoryUsage.rss() / 2 ** 20;

let settledMb = Number.NaN;
let mostMb = 0;
try {
  for (let run = 1; run <= numRuns; run++) {
    const dir = join(folder, String(run));
    {
      await using runtime = await Runtime.spawn({ ranks, placement, checkpoint: { dir } });
      await runtime.run(join(example, "job.ts"), { steps, data: join(example, "../../README.md") });
    }
    rmSync(dir, { recursive: true });
    const nowMb = residentMb();
    if (run === SETTLED) settledMb = nowMb;
    if (run > SETTLED) mostMb = Math.max(mostMb, nowMb);
    process.stdout.write(`run ${run}: ${nowMb.toFixed(0)} MB resident\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const grownMb = mostMb - settledMb;
process.stdout.write(
  `at most ${grownMb.toFixed(1)} MB more than after run ${SETTLED}, where ${limitMb} may be\n`,
);
process.exitCode = grownMb > limitMb ? 1 : 0;
