import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SafetensorsFile, stepFolder } from "../../../src/entries/checkpoint.ts";
import type { RuntimeOptions, TroupeEvent } from "../../../src/entries/index.ts";
import { writeSafetensors } from "../../../src/library/checkpoint/index.ts";
import { pointOf } from "../../fixtures/labelled-points.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const normedJob = new URL("../../fixtures/jobs/normed.ts", import.meta.url);
const normedLoop = new URL("../../fixtures/jobs/normed-loop.ts", import.meta.url);
const steps = 6;

/** The results of a run: losses of training and of evaluation, and the model in its last checkpoint. */
interface Run {
  readonly losses: readonly number[];
  readonly evaluations: readonly number[];
  readonly saved: ReadonlyMap<string, readonly number[]>;
}

describe("buffers that forward writes", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  let numRuns = 0;
  let plain: Run;

  async function train(
    options: RuntimeOptions,
    config: Record<string, unknown> = {},
    job = normedJob,
  ): Promise<Run> {
    const checkpoint = { dir: workspace.path(`run-${numRuns++}`), everySteps: 2 };
    const outcome = await runTiny(workspace, { steps, checkpoint, ...options }, config, job);
    if (outcome.error !== undefined) throw outcome.error;
    const folder = join(options.checkpoint?.dir ?? checkpoint.dir, stepFolder(options.steps ?? steps));
    return {
      losses: outcome.losses,
      evaluations: evaluationsOf(outcome.events),
      saved: await modelIn(folder),
    };
  }

  beforeAll(async () => {
    plain = await train({ ranks: 1, zero: 0, accumulation: 2 });
  });

  it("are saved under torch's names, and are what the definition makes of the batches", () => {
    const names = [...plain.saved.keys()].filter((name) => name.startsWith("floors.1.norm."));
    expect(names.toSorted()).toEqual(
      ["bias", "num_batches_tracked", "running_mean", "running_var", "weight"].map(
        (name) => `floors.1.norm.${name}`,
      ),
    );
    const { mean, variance } = averagesOfPoints({ momentum: 0.25, batchSize: 8, accumulation: 2 });
    // The same sums in float64: what float32 rounds in six steps.
    plain.saved.get("points.running_mean")?.forEach((value, at) => {
      expect(value).toBeCloseTo(mean[at] ?? Number.NaN, 6);
    });
    plain.saved.get("points.running_var")?.forEach((value, at) => {
      expect(value).toBeCloseTo(variance[at] ?? Number.NaN, 6);
    });
    expect(plain.saved.get("points.num_batches_tracked")).toEqual([steps]);
    expect(plain.saved.get("last.running_var")).not.toEqual([1, 1, 1, 1]);
    expect(plain.losses.at(-1)).toBeLessThan((plain.losses[0] ?? 0) - 0.1);
    expect(plain.evaluations).toHaveLength(3);
  });

  it.each([
    { ranks: 2, zero: 0 },
    { ranks: 2, zero: 3, recompute: true },
    { ranks: 1, zero: 3, accumulation: 2, recompute: ["norm"] },
    { ranks: 2, zero: 2, placement: "process" },
    { ranks: 2, pp: 2, accumulation: 2, recompute: true },
    { ranks: 2, tp: 2, accumulation: 2 },
    { ranks: 2, zero: 3, offload: { optimizer: "host" } },
  ] as const satisfies RuntimeOptions[])("hold the same bits under %o", async (options) => {
    expect(await train(options)).toEqual(plain);
  });

  it("go on bit for bit on another number of ranks, and after a rank's death", async () => {
    const dir = workspace.path("resumed");
    await train({ ranks: 1, zero: 0, accumulation: 2, checkpoint: { dir }, steps: 4 });
    const rest = await train({ ranks: 2, zero: 2, resume: dir });
    expect(rest.losses.slice(4)).toEqual(plain.losses.slice(4));
    expect(rest.saved).toEqual(plain.saved);
    const once = workspace.path("died");
    const died = await train({ ranks: 2, zero: 1 }, { dieAt: 5, dieOnce: once });
    expect(existsSync(once)).toBe(true);
    expect(died.saved).toEqual(plain.saved);
    expect(died.losses).toEqual(plain.losses);
  });

  it("are written by a loop of one's own as by a job", async () => {
    expect(await train({ ranks: 2, zero: 2 }, {}, normedLoop)).toEqual(plain);
  });

  it("stay as they were in a step that is skipped", async () => {
    const options = { ranks: 1, zero: 0, accumulation: 2, lossScale: 1024, steps: 3 } as const;
    const { saved } = await train(options, { overflowAt: 2 });
    expect(saved.get("points.num_batches_tracked")).toEqual([2]);
  });

  it("are read from the files of torch, whose counters are whole numbers", async () => {
    const pretrained = await torchFolder(workspace.path("torch"), plain.saved);
    const { saved } = await train({ ranks: 1, zero: 0, accumulation: 2, steps: 2 }, { pretrained });
    expect(saved.get("last.num_batches_tracked")).toEqual([steps + 2]);
    const begins = plain.saved.get("points.running_mean") ?? [];
    const of = { momentum: 0.25, batchSize: 8, accumulation: 2, numSteps: 2, begins };
    saved.get("points.running_mean")?.forEach((value, at) => {
      expect(value).toBeCloseTo(averagesOfPoints(of).mean[at] ?? Number.NaN, 6);
    });
  });

  it("stay float32 where the ranks compute in bfloat16, and take no part in a gradient's norm", async () => {
    const layout = { ranks: 1, zero: 0, accumulation: 2 } as const;
    // Nothing that is trained comes before the averages of the points.
    const averages = ({ saved }: Run) =>
      ["points.running_mean", "points.running_var"].flatMap((name) => saved.get(name) ?? []);
    const narrow = averages(await train({ ...layout, precision: "bf16" }));
    // bfloat16 has the points exactly; averages that were rounded to it would be off by 0.004 of them.
    averages(plain).forEach((value, at) => {
      expect(narrow[at]).toBeCloseTo(value, 6);
    });
    expect(averages(await train(layout, { clipNorm: 0 }))).toEqual(averages(plain));
    expect(averages(await train(layout, { clipNorm: 1e-6 }))).toEqual(averages(plain));
  });
});

/** The same model as torch saves it: counters are whole numbers. */
async function torchFolder(folder: string, saved: Run["saved"]): Promise<string> {
  mkdirSync(folder);
  writeFileSync(join(folder, "config.json"), "{}");
  const tensors = [...saved].map(([name, values]) => {
    const isCounter = name.endsWith("num_batches_tracked");
    const { buffer } = isCounter ? BigInt64Array.from(values, BigInt) : Float32Array.from(values);
    const shape = isCounter ? [] : name.match(/(up|down|head)\.weight$/) ? shapeOf(name) : [values.length];
    return { name, dtype: isCounter ? "I64" : "F32", shape, read: () => new Uint8Array(buffer) } as const;
  });
  await writeSafetensors(join(folder, "model.safetensors"), tensors);
  return folder;
}

function shapeOf(name: string): number[] {
  if (name === "head.weight") return [3, 4];
  return name.endsWith("up.weight") ? [8, 4] : [4, 8];
}

function evaluationsOf(events: readonly TroupeEvent[]): number[] {
  return events.flatMap((event) => (event.kind === "evaluation.finished" ? [event.lossNats] : []));
}

async function modelIn(folder: string): Promise<Map<string, readonly number[]>> {
  await using file = await SafetensorsFile.open(join(folder, "model.safetensors"));
  const values = new Map<string, readonly number[]>();
  for (const name of [...file.tensors.keys()].toSorted()) {
    const bytes = await file.read(name);
    values.set(name, [...new Float32Array(bytes.slice().buffer)]);
  }
  return values;
}

/** By the formulas of torch.nn.BatchNorm1d, each step's micro-batches averaged. */
function averagesOfPoints(of: {
  momentum: number;
  batchSize: number;
  accumulation: number;
  numSteps?: number;
  /** The means to begin with; 0 unless given. */
  begins?: readonly number[];
}) {
  const { momentum, batchSize, accumulation, numSteps = steps, begins = [] } = of;
  const averaged = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const channels = [0, 1, 2, 3].map((channel) => {
    let [mean, variance] = [begins[channel] ?? 0, 1];
    for (let step = 0; step < numSteps; step++) {
      const batches = Array.from({ length: accumulation }, (_, microBatch) =>
        Array.from({ length: batchSize }, (_, index) => {
          const sample = (step * accumulation + microBatch) * batchSize + index;
          return pointOf(sample)[channel] as number;
        }),
      );
      const means = batches.map(averaged);
      const variances = batches.map((batch, index) => {
        const squares = batch.map((value) => (value - (means[index] as number)) ** 2);
        return (averaged(squares) * batchSize) / (batchSize - 1);
      });
      mean = (1 - momentum) * mean + momentum * averaged(means);
      variance = (1 - momentum) * variance + momentum * averaged(variances);
    }
    return { mean, variance };
  });
  return { mean: channels.map(({ mean }) => mean), variance: channels.map(({ variance }) => variance) };
}
