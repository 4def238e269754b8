import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TensorRecording } from "../../../src/compute/nn/index.ts";
import { scope, zeros } from "../../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions, type TensorSummary } from "../../../src/entries/index.ts";
import { innerWeight, numFeatures, outerWeight, sample } from "../../fixtures/jobs/recorded-regression.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/jobs/recorded.ts", import.meta.url);

interface Seen {
  readonly tensors: readonly TensorSummary[];
  readonly losses: readonly number[];
}

/** Trains two steps and looks at the recorded tensors of the first. */
async function inspect(
  workspace: Workspace,
  options: RuntimeOptions,
  config: Readonly<Record<string, unknown>> = {},
  pattern = "*",
): Promise<Seen> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, steps: 2, ...options });
  let tensors: Promise<readonly TensorSummary[]> | undefined;
  const losses: number[] = [];
  runtime.events$.subscribe((event) => {
    if (event.kind === "run.started") tensors = runtime.inspectTensors(pattern);
    if (event.kind === "step.finished") losses.push(event.lossNats);
  });
  await runtime.run(job, { data: workspace.text, cache: workspace.path("cache"), layers: 3, ...config });
  return { tensors: (await tensors) ?? [], losses };
}

const numbers = ["std", "mean", "max", "min", "gradStd", "gradMean"] as const;

/** float32 activations of other batch shapes differ in their last bits. */
function expectAlike(one: readonly TensorSummary[], other: readonly TensorSummary[]): void {
  expect(one.map(({ name, shape }) => ({ name, shape }))).toEqual(
    other.map(({ name, shape }) => ({ name, shape })),
  );
  one.forEach((summary, index) => {
    for (const kind of numbers) expect(summary[kind]).toBeCloseTo(other[index]?.[kind] ?? Number.NaN, 5);
  });
}

describe("inspectTensors", () => {
  const workspace = new Workspace();
  let plain: Seen = { tensors: [], losses: [] };
  beforeAll(async () => {
    plain = await inspect(workspace, { ranks: 2, zero: 3 });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("numbers the records of a name along the model and stacks the replicas' shapes", () => {
    expect(plain.tensors.map(({ name, shape }) => ({ name, shape }))).toEqual([
      { name: "layers.0.hidden", shape: [4, 16, 32] },
      { name: "layers.1.hidden", shape: [4, 16, 32] },
      { name: "layers.2.hidden", shape: [4, 16, 32] },
      { name: "0.normed", shape: [4, 16, 32] },
    ]);
  });

  it("tells deviations and gradients of tensors inside blocks and between them", () => {
    for (const { std, gradStd } of plain.tensors) {
      expect(std).toBeGreaterThan(0);
      expect(gradStd).toBeGreaterThan(0);
    }
    // The output of a layer norm with its initial weights.
    expect(plain.tensors[3]?.std).toBeCloseTo(1, 1);
    expect(plain.tensors[3]?.mean).toBeCloseTo(0, 6);
  });

  // BMTrain records them twice, once in forward and once when a block is computed again.
  it("records a tensor once where its block is computed again, gradient and all", async () => {
    const again = await inspect(workspace, { ranks: 2, zero: 3, recompute: true });
    expect(again.tensors).toEqual(plain.tensors);
  });

  // In BMTrain such a loss does not ask for a gradient.
  it("lets a loss be made of a recorded tensor", async () => {
    const { tensors, losses } = await inspect(workspace, { ranks: 2 }, { lossOnRecorded: true });
    expect(losses).toHaveLength(2);
    expect(losses[1]).toBeLessThan(losses[0] ?? 0);
    for (const { gradStd } of tensors) expect(gradStd).toBeGreaterThan(0);
  });

  it("gives the numbers too where they are asked for, which amount to the statistics, under any layout", async () => {
    const seen = async (options: RuntimeOptions) => {
      await using runtime = await Runtime.spawn({
        threadsPerRank: 1,
        warmStandby: false,
        steps: 1,
        ...options,
      });
      const asked: Promise<readonly TensorSummary[]>[] = [];
      runtime.on("run.started", () => {
        asked.push(runtime.inspectTensors("layers.*", { values: true }), runtime.inspectTensors("*"));
      });
      await runtime.run(job, { data: workspace.text, cache: workspace.path("cache"), layers: 3 });
      return Promise.all(asked);
    };
    const [valued = [], bare = []] = await seen({ ranks: 2, zero: 3 });
    expect(valued.map(({ name }) => name)).toEqual(["layers.0.hidden", "layers.1.hidden", "layers.2.hidden"]);
    for (const { values, shape, mean, max, min } of valued) {
      if (!(values instanceof Float32Array)) throw new Error(`values are ${values}`);
      expect(values).toHaveLength(shape.reduce((product, size) => product * size, 1));
      expect(values.reduce((sum, value) => sum + value, 0) / values.length).toBeCloseTo(mean, 6);
      expect([values.reduce((a, b) => Math.max(a, b)), values.reduce((a, b) => Math.min(a, b))]).toEqual([
        max,
        min,
      ]);
    }
    expect(bare).toEqual(plain.tensors);
    expect(bare.some((summary) => "values" in summary)).toBe(false);
    const [staged = []] = await seen({ ranks: 2, pp: 2, placement: "process" });
    for (const [index, { values }] of staged.entries()) {
      const one = valued[index]?.values as Float32Array;
      const differences = (values as Float32Array).map((value, place) => Math.abs(value - (one[place] ?? 0)));
      expect(values).toHaveLength(one.length);
      expect(differences.reduce((a, b) => Math.max(a, b))).toBeLessThan(1e-5);
    }
  });

  it("changes nothing of the run", async () => {
    const unseen = await inspect(workspace, { ranks: 2, zero: 3 }, {}, "nothing");
    expect(unseen.tensors).toEqual([]);
    expect(unseen.losses).toEqual(plain.losses);
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, steps: 2, ranks: 2 });
    const losses: number[] = [];
    runtime.events$.subscribe((event) => {
      if (event.kind === "step.finished") losses.push(event.lossNats);
    });
    await runtime.run(job, { data: workspace.text, cache: workspace.path("cache"), layers: 3 });
    expect(losses).toEqual(plain.losses);
  });

  it.each<[string, RuntimeOptions]>([
    ["a pipeline", { ranks: 2, pp: 2, accumulation: 2 }],
    [
      "an interleaved pipeline",
      { ranks: 2, pp: 2, schedule: "interleaved", chunks: 2, accumulation: 2, recompute: true },
    ],
    ["tensor parallelism", { ranks: 4, tp: 2 }],
  ])("tells the same under %s", async (_, options) => {
    const config = options.chunks === undefined ? {} : { layers: 4 };
    const whole = options.chunks === undefined ? plain : await inspect(workspace, { ranks: 2 }, config);
    expectAlike((await inspect(workspace, options, config)).tensors, whole.tensors);
  });
});

describe("the gradient of a recorded tensor", () => {
  const numSamples = 8;
  const samples = Array.from({ length: numSamples }, (_, position) => sample(position));
  const hidden = samples.flatMap(({ x }) =>
    Array.from({ length: numFeatures }, (_, row) =>
      x.reduce((sum, value, column) => sum + value * (innerWeight[row * numFeatures + column] ?? 0), 0),
    ),
  );

  /** The step's loss as a function of what is recorded, in float64. */
  function lossOf(recorded: readonly number[]): number {
    const errors = samples.map(({ y }, index) => {
      const features = recorded.slice(index * numFeatures, (index + 1) * numFeatures);
      return features.reduce((sum, value, row) => sum + Math.tanh(value) * (outerWeight[row] ?? 0), -y);
    });
    return errors.reduce((sum, error) => sum + error * error, 0) / numSamples;
  }

  const width = 1e-5;
  const gradient = hidden.map((value, index) => {
    const above = lossOf(hidden.with(index, value + width));
    return (above - lossOf(hidden.with(index, value - width))) / (2 * width);
  });
  const mean = gradient.reduce((sum, value) => sum + value, 0) / gradient.length;
  // The standard deviation of a sample, as torch has it.
  const std = Math.sqrt(gradient.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (gradient.length - 1));

  it.each<RuntimeOptions>([
    { ranks: 1 },
    { ranks: 1, accumulation: 4 },
    { ranks: 2, accumulation: 2, zero: 3 },
    { ranks: 2, precision: "amp-fp16", lossScale: 256, accumulation: 2 },
  ])("is that of the step's loss, by finite differences, with %o", async (options) => {
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
    let tensors: Promise<readonly TensorSummary[]> | undefined;
    runtime.on("run.started", () => {
      tensors = runtime.inspectTensors();
    });
    const regression = new URL("../../fixtures/jobs/recorded-regression.ts", import.meta.url);
    await runtime.run(regression, { batch: numSamples });
    const [seen] = (await tensors) ?? [];
    expect(seen).toMatchObject({ name: "0.hidden", shape: [numSamples, numFeatures] });
    // Half precision has 11 bits; differences of float64 are exact to ten digits here.
    const digits = options.precision === "amp-fp16" ? 3 : 6;
    expect(seen?.gradMean).toBeCloseTo(mean, digits);
    expect(seen?.gradStd).toBeCloseTo(std, digits);
  });
});

describe("the numbers of recorded tensors", () => {
  it("recorded tensors are dropped together if one rank has more than 32 MiB of them", () => {
    scope(() => {
      const recording = new TensorRecording((name) => name !== "0.unasked");
      recording.record(zeros([1 << 23]), "large", undefined);
      recording.record(zeros([1]), "small", undefined);
      recording.record(zeros([1]), "unasked", undefined);
      const [large, small, unasked] = recording.finish();
      expect(large?.numbers).toHaveLength(1 << 23);
      expect([small?.numbers, unasked?.numbers]).toEqual(["too many", undefined]);
    });
  });
});
