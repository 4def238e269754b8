import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  Runtime,
  type RuntimeOptions,
  type TensorSummary,
  type UpdateSummary,
} from "../../../src/entries/index.ts";
import { readTensors } from "../../fixtures/read-tensors.ts";
import { lossesOf, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

interface Seen {
  readonly updates: UpdateSummary;
  readonly model: readonly TensorSummary[];
  readonly learningRate: number;
}

/** Looks at the first step of a run. */
async function inspect(
  workspace: Workspace,
  options: RuntimeOptions,
  config: Readonly<Record<string, unknown>> = {},
  pattern = "*",
): Promise<Seen> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
  let asked: Promise<[UpdateSummary, readonly TensorSummary[]]> | undefined;
  let learningRate = Number.NaN;
  runtime.events$.subscribe((event) => {
    if (event.kind === "run.started")
      asked = Promise.all([runtime.inspectUpdates(pattern), runtime.inspectModel(pattern)]);
    if (event.kind === "step.finished") learningRate = event.learningRate;
  });
  await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), ...config });
  const [updates, model] = (await asked) ?? [];
  if (updates === undefined || model === undefined) throw new Error("expected the run to start");
  return { updates, model, learningRate };
}

const adam = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.1 };

/** AdamW's direction, element by element: what BMTrain records. @param before - the parameters that were updated */
function directionOf(
  before: Float32Array,
  moment: Float32Array,
  square: Float32Array,
  { updateIndex, decay }: { readonly updateIndex: number; readonly decay: number },
): Float64Array {
  return Float64Array.from(before, (value, index) => {
    const mean = (moment[index] as number) / (1 - adam.beta1 ** updateIndex);
    const root = Math.sqrt((square[index] as number) / (1 - adam.beta2 ** updateIndex));
    return mean / (root + adam.eps) + decay * value;
  });
}

function momentsOf(values: Float64Array): { mean: number; variance: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean, variance: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length };
}

describe("inspectUpdates", () => {
  const workspace = new Workspace();
  const begun = workspace.path("begun");
  beforeAll(() => lossesOf(workspace, { steps: 2, checkpoint: { dir: begun } }));
  afterAll(() => workspace[Symbol.dispose]());

  it.each<[string, RuntimeOptions]>([
    ["slices whose state is in files", { ranks: 2, zero: 3, offload: { optimizer: "nvme", dir: "." } }],
    ["split layers in a pipeline", { ranks: 4, tp: 2, pp: 2, zero: 1, accumulation: 2 }],
    ["bfloat16 with masters elsewhere", { ranks: 2, precision: "bf16", offload: { optimizer: "host" } }],
  ])("tells AdamW's direction as BMTrain's record_delta does: %s", async (name, options) => {
    const dir = workspace.path(name);
    const resume = join(begun, "step-000002");
    const { updates, learningRate } = await inspect(workspace, {
      ...options,
      ...(options.offload?.dir === undefined
        ? {}
        : { offload: { ...options.offload, dir: workspace.folder } }),
      resume,
      steps: 3,
      checkpoint: { dir },
    });
    const before = await readTensors(join(resume, "model.safetensors"));
    const state = await readTensors(join(dir, "step-000003", "optimizer.safetensors"));
    // The new values are rounded to float32, and are below 2: half a unit in the last place, over the rate.
    const tolerance = 2 ** -24 / learningRate;
    expect(updates.parameters.map((each) => each.name).toSorted()).toEqual([...before.keys()].toSorted());
    const all: number[] = [];
    for (const { name: parameter, shape, direction } of updates.parameters) {
      const expected = directionOf(
        before.get(parameter) as Float32Array,
        state.get(`exp_avg.${parameter}`) as Float32Array,
        state.get(`exp_avg_sq.${parameter}`) as Float32Array,
        { updateIndex: 3, decay: shape.length > 1 ? adam.weightDecay : 0 },
      );
      all.push(...expected);
      expect(direction.count, parameter).toBe(expected.length);
      expect(Math.abs(direction.max - Math.max(...expected)), parameter).toBeLessThan(tolerance);
      expect(Math.abs(direction.min - Math.min(...expected)), parameter).toBeLessThan(tolerance);
      expect(Math.abs(direction.mean - momentsOf(expected).mean), parameter).toBeLessThan(tolerance);
    }
    const whole = momentsOf(Float64Array.from(all));
    expect(Math.abs(updates.mean - whole.mean)).toBeLessThan(tolerance);
    // Elements are of the order of 1, so an error of each moves their square by twice that.
    expect(Math.abs(updates.variance - whole.variance)).toBeLessThan(2 * tolerance);
    expect(updates.variance).toBeGreaterThan(0.01);
  });

  it("tells the averaged gradient where that is the direction, of the names that match", async () => {
    const config = { optimizer: "plain SGD", clipNorm: 0 };
    const { updates, model } = await inspect(workspace, { ranks: 2, steps: 1 }, config, "*.ln_?.*");
    expect(updates.parameters.map(({ name }) => name)).toEqual(model.map(({ name }) => name));
    for (const [index, { direction }] of updates.parameters.entries()) {
      const { gradMean = Number.NaN, gradStd = Number.NaN } = model[index] ?? {};
      // As above: the first learning rate of the warm-up is 0.2.
      expect(Math.abs(direction.mean - gradMean)).toBeLessThan(2 ** -24 / 0.2);
      expect(Math.sqrt(direction.squares / (direction.count - 1))).toBeCloseTo(gradStd, 6);
    }
  });

  it("is empty where the step is left out", async () => {
    const scaled = { precision: "fp16", lossScale: { kind: "torch", scale: 2 ** 40 } } as const;
    const { updates } = await inspect(workspace, { steps: 1, ...scaled });
    expect(updates).toEqual({ mean: 0, variance: 0, parameters: [] });
  });
});
