// npm run bench -- live: tokens a second of a script that makes every step of a live model by accumulate and step, beside
// Runtime.run on the same batches, by turns in one process; each round begins with another. The fastest rounds are compared: other work
// on the machine only slows a round. Exits with 1 where their ratio is less than the limit.
import { fileURLToPath } from "node:url";
import { countOf, numberOf, readArguments } from "../scripts/arguments.mjs";
import { type EventSink, Runtime } from "../src/entries/index.ts";
import { median } from "./median.ts";

const usage = `
usage: npm run bench -- live [OPTIONS]

  --ranks N    (1)
  --zero N     (1)
  --steps N    that are timed in a round (150)
  --rounds N   (5)
  --limit N    the least ratio of a script that awaits nothing (0.97)`;
const text = { type: "string" } as const;
const { values } = readArguments(usage, {
  ranks: { ...text, default: "1" },
  zero: { ...text, default: "1" },
  steps: { ...text, default: "150" },
  rounds: { ...text, default: "5" },
  limit: { ...text, default: "0.97" },
});
const [ranks, steps, rounds] = [
  countOf(usage, "ranks", values.ranks),
  countOf(usage, "steps", values.steps),
  countOf(usage, "rounds", values.rounds),
];
const zero = Number(values.zero);
const limit = numberOf(usage, "limit", values.limit);
/** Steps before those that are timed: in their two seconds the standbys of a live model load too. */
const WARM_UP = 60;
const numSteps = WARM_UP + steps;
const job = fileURLToPath(new URL("../examples/gpt/job.ts", import.meta.url));
const shape = { batch: 12, context: 64 };
const config = {
  ...shape,
  data: fileURLToPath(new URL("../README.md", import.meta.url)),
  tokenizer: "byte",
  sampleTokens: 1,
  evaluateEvery: numSteps + 1,
  evaluationSamples: shape.batch,
};

/** Makes the steps on a runtime of its own. @returns tokens a second */
async function measure(make: (runtime: Runtime) => Promise<unknown>): Promise<number> {
  const at: number[] = [];
  const clock: EventSink = {
    write: ({ kind }) => {
      if (kind === "step.finished") at.push(performance.now());
    },
    close: async () => {},
  };
  await using runtime = await Runtime.spawn({ ranks, zero: zero as 1, steps: numSteps, sinks: [clock] });
  await make(runtime);
  const tookMs = (at[numSteps - 1] ?? Number.NaN) - (at[WARM_UP - 1] ?? Number.NaN);
  return (steps * shape.batch * shape.context * 1000) / tookMs;
}

async function makeCalls(runtime: Runtime, awaits: boolean): Promise<void> {
  await using model = await runtime.open(job, config);
  for (let step = 0; step < numSteps; step++) {
    const batch = { split: "train", position: step * shape.batch, numSamples: shape.batch };
    const accumulated = model.accumulate("loss", batch);
    const stepped = model.step();
    if (awaits) await Promise.all([accumulated, stepped]);
  }
  await model.close();
}

const ways: Readonly<Record<string, (runtime: Runtime) => Promise<unknown>>> = {
  "Runtime.run": (runtime) => runtime.run(job, config),
  "a script that awaits nothing": (runtime) => makeCalls(runtime, false),
  "a script that awaits each step": (runtime) => makeCalls(runtime, true),
};
const rates = Object.keys(ways).map(() => [] as number[]);
for (let round = 0; round < rounds; round++)
  for (let turn = 0; turn < rates.length; turn++) {
    const index = (round + turn) % rates.length;
    rates[index]?.push(await measure(Object.values(ways)[index] as (runtime: Runtime) => Promise<unknown>));
  }
const fastest = rates.map((of) => Math.max(...of));
const ratios = fastest.map((rate) => rate / (fastest[0] as number));
for (const [index, name] of Object.keys(ways).entries())
  process.stdout.write(
    `${name}: ${fastest[index]?.toFixed(0)} tokens/s in its fastest round, ${ratios[index]?.toFixed(3)} of the run's; median ${median(rates[index] ?? []).toFixed(0)}\n`,
  );
process.exitCode = (ratios[1] as number) < limit ? 1 : 0;
