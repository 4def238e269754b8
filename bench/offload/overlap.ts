import { Runtime, type RuntimeOptions } from "troupe";

const layers = 8;
/** Blocks that are reduced and updated: the layers and the root. */
const numBlocks = layers + 1;
const config = { layers, dim: 256, heads: 4, vocab: 4096, batch: 4, seq: 128 };

/**
 * A step with delays put in on purpose, beside the step without them: hidden, a step takes the longer of the two; not
 * hidden, their sum. Each delay of a kind is waited for after the one before it, as on one disk or one link.
 */
export async function reportOverlap(dir: string, steps: number): Promise<void> {
  const rows: [string, RuntimeOptions, number][] = [
    ["updates in memory", { offload: { optimizer: "host" } }, 0],
    ["updates in a file", { offload: { optimizer: "nvme", dir } }, 0],
    ["the same, clipped", { offload: { optimizer: "nvme", dir } }, 1],
  ];
  console.log(
    `overlap: ${layers} layers of ${config.dim}, ${steps} steps, medians; delays for ${numBlocks} blocks`,
  );
  for (const [what, options, clip] of rows) {
    const computeMs = await stepMs(options, steps, clip);
    const updateMs = Math.max(1, Math.round((0.8 * computeMs) / numBlocks));
    const measuredMs = await stepMs({ ...options, slowdown: { updateMs } }, steps, clip);
    tell(what, computeMs, numBlocks * updateMs, measuredMs);
  }
  await reportParameters(dir, steps);
  const computeMs = await stepMs({}, steps, 0);
  // Backward alone hides reductions: two thirds of the computation, the root's reduction at its end.
  const reduceMs = Math.max(1, Math.round((0.4 * computeMs) / numBlocks));
  tell("reductions", computeMs, numBlocks * reduceMs, await stepMs({ slowdown: { reduceMs } }, steps, 0));
}

/** Offloaded parameters, two blocks ahead: every transfer is delayed, and most blocks come twice a step and go once. */
async function reportParameters(dir: string, steps: number): Promise<void> {
  const away: RuntimeOptions = {
    zero: 3,
    prefetchBytes: 8e6,
    offload: { parameters: "nvme", dir },
  };
  for (const [what, precision, clip] of [
    ["parameters", "bf16", 0],
    ["the same, clipped", "bf16", 1],
    ["float32", "fp32", 0],
    ["the same, clipped", "fp32", 1],
  ] as const) {
    const options = { ...away, precision };
    const computeMs = await stepMs(options, steps, clip);
    const numTransfers = await transfersPerStep(options, steps, clip);
    const transferMs = Math.max(1, Math.round((0.8 * computeMs) / numTransfers));
    const measuredMs = await stepMs({ ...options, slowdown: { transferMs } }, steps, clip);
    tell(
      `${what}, ${numTransfers.toFixed(0)} ways`,
      computeMs,
      Math.round(numTransfers * transferMs),
      measuredMs,
    );
  }
}

async function transfersPerStep(options: RuntimeOptions, steps: number, clip: number): Promise<number> {
  await using runtime = await Runtime.spawn({ ranks: 1, precision: "bf16", trace: true, ...options });
  let numTransfers = 0;
  runtime.events$.subscribe((event) => {
    if (event.kind === "activity.finished" && (event.activity === "bring" || event.activity === "store"))
      numTransfers += 1;
  });
  await runtime.run(new URL("../gpt/job.ts", import.meta.url), { ...config, steps, clip });
  // Each block is stored once more, when it is filled.
  return (numTransfers - layers) / steps;
}

function tell(what: string, computeMs: number, delayMs: number, measuredMs: number): void {
  const ms = (value: number) => `${value.toFixed(0)} ms`;
  const larger = Math.max(computeMs, delayMs);
  console.log(
    `${what.padEnd(18)} compute ${ms(computeMs)}, delays ${ms(delayMs)}: max ${ms(larger)}, sum ${ms(computeMs + delayMs)}, ` +
      `measured ${ms(measuredMs)} (${(measuredMs / larger).toFixed(2)} x max)`,
  );
}

/** Median time from one step's end to the next one's. */
async function stepMs(options: RuntimeOptions, steps: number, clip: number): Promise<number> {
  await using runtime = await Runtime.spawn({ ranks: 1, precision: "bf16", ...options });
  const at: number[] = [];
  runtime.events$.subscribe((event) => {
    if (event.kind === "step.finished") at.push(performance.now());
  });
  await runtime.run(new URL("../gpt/job.ts", import.meta.url), { ...config, steps, clip });
  const times = at
    .slice(3)
    .map((time, index) => time - (at[index + 2] as number))
    .toSorted((a, b) => a - b);
  return times[Math.floor(times.length / 2)] ?? Number.NaN;
}
