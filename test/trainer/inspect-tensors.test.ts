import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Runtime, type RuntimeOptions, type TensorSummary } from "../../src/index.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const job = new URL("../fixtures/jobs/recorded.ts", import.meta.url);

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
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, steps: 2, ...options });
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

  it("changes nothing of the run", async () => {
    const unseen = await inspect(workspace, { ranks: 2, zero: 3 }, {}, "nothing");
    expect(unseen.tensors).toEqual([]);
    expect(unseen.losses).toEqual(plain.losses);
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, steps: 2, ranks: 2 });
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
