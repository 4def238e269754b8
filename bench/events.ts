/**
 * Measures the cost of events for a step: runs without subscribers, then the same with every sink, with a dashboard and its page,
 * with sampled traces, and fully traced, in turn; then the main job with every sink and without. Ratios are within a round.
 * `npm run bench -- events [--rounds 5] [--steps 60] [--ranks 2]`
 */
import { countOf, readArguments } from "../scripts/arguments.mjs";
import { type Measured, measure, type Work } from "./events/measure.ts";
import { everySink, nobody, type Telling, tellings } from "./events/telling.ts";
import { median } from "./measure/median.ts";

const usage = `
usage: npm run bench -- events [OPTIONS]

  --rounds N  of all runs in turn (5)
  --steps N   of each run (60)
  --ranks N   of each run (2)`;
const { values: flags } = readArguments(usage, {
  rounds: { type: "string", default: "5" },
  steps: { type: "string", default: "60" },
  ranks: { type: "string", default: "2" },
});
const ranks = countOf(usage, "ranks", flags.ranks);
const steps = countOf(usage, "steps", flags.steps);
const numRounds = countOf(usage, "rounds", flags.rounds);

const small: Work = {
  job: new URL("./gpt/job.ts", import.meta.url),
  config: { layers: 4, dim: 128, heads: 4, vocab: 1024, batch: 4, seq: 128, steps },
  ranks,
};
const mainJob: Work = {
  job: new URL("../examples/gpt/job.ts", import.meta.url),
  config: { steps, warmup: 0 },
  ranks,
};

console.log(
  `${ranks} ranks, medians of ${numRounds} rounds in turn; times of one step, CPU is processor time`,
);
await compare("4 layers of 128, 512 tokens a rank", small, tellings);
await compare("the main job, examples/gpt/job.ts", mainJob, [nobody, everySink]);

async function compare(title: string, work: Work, rows: readonly Telling[]): Promise<void> {
  const measured = rows.map((): Measured[] => []);
  for (let round = 0; round < numRounds; round++) {
    for (let place = 0; place < rows.length; place++) {
      // Each row goes first as often as any other, so that a machine that warms up favours none.
      const index = (place + round) % rows.length;
      measured[index]?.push(await measure(work, rows[index] as Telling));
    }
  }
  console.log(title);
  const [base = []] = measured;
  for (const [index, { name }] of rows.entries())
    console.log(`  ${name.padEnd(24)}${line(measured[index] ?? [], base)}`);
}

/** One row, relative to the run without subscribers. */
function line(own: readonly Measured[], base: readonly Measured[]): string {
  const of = (field: keyof Measured) => median(own.map((one) => one[field]));
  const ratio = (field: keyof Measured) =>
    median(own.map((one, round) => one[field] / (base[round]?.[field] ?? Number.NaN)));
  const stepMs = of("stepMs");
  const moreMs = median(own.map((one, round) => one.mainMs - (base[round]?.mainMs ?? Number.NaN)));
  const share = (ms: number) => `${((100 * ms) / stepMs).toFixed(2)} %`;
  return [
    `${stepMs.toFixed(2)} ms (${ratio("stepMs").toFixed(3)} x)`,
    `all CPU ${of("processMs").toFixed(1)} ms (${ratio("processMs").toFixed(3)} x)`,
    `main thread ${of("mainMs").toFixed(2)} ms, ${moreMs.toFixed(2)} more (${share(moreMs)} of the step)`,
    `in sinks ${of("sinksMs").toFixed(2)} ms (${share(of("sinksMs"))})`,
  ].join("; ");
}
