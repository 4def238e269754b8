import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  formatSummary,
  Runtime,
  type RuntimeOptions,
  type TensorSummary,
} from "../../../src/entries/index.ts";
import { readTensors } from "../../fixtures/read-tensors.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/jobs/inspected.ts", import.meta.url);

/** Trains one step and looks at its parameters. */
async function inspect(
  workspace: Workspace,
  options: RuntimeOptions,
  config: Readonly<Record<string, unknown>> = {},
  pattern = "*",
): Promise<readonly TensorSummary[]> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, steps: 1, ...options });
  let summaries: Promise<readonly TensorSummary[]> | undefined;
  runtime.events$.subscribe((event) => {
    if (event.kind === "run.started") summaries = runtime.inspectModel(pattern);
  });
  await runtime.run(job, { data: workspace.text, cache: workspace.path("cache"), ...config });
  return (await summaries) ?? [];
}

function plainStatistics(values: Float32Array) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const std = Math.sqrt(squares / (values.length - 1));
  return { mean, std, max: Math.max(...values), min: Math.min(...values) };
}

const numbers = ["std", "mean", "max", "min", "gradStd", "gradMean"] as const;

/** @param digits - after the point; sums in float64 by other parts differ in their last bits */
function expectAlike(one: readonly TensorSummary[], other: readonly TensorSummary[], digits = 12): void {
  expect(one.map(({ name, shape }) => ({ name, shape }))).toEqual(
    other.map(({ name, shape }) => ({ name, shape })),
  );
  one.forEach((summary, index) => {
    for (const kind of numbers) expect(summary[kind]).toBeCloseTo(other[index]?.[kind] ?? Number.NaN, digits);
  });
}

describe("inspectModel", () => {
  const workspace = new Workspace();
  let plain: readonly TensorSummary[] = [];
  const saved = workspace.path("saved");
  beforeAll(async () => {
    plain = await inspect(workspace, { ranks: 2, zero: 0, checkpoint: { dir: saved } });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("tells every parameter's shape, true deviation, mean and extremes as the step leaves them", async () => {
    const weights = await readTensors(join(saved, "step-000001", "model.safetensors"));
    expect(plain).toHaveLength(weights.size);
    for (const { name, shape, std, mean, max, min } of plain) {
      const values = weights.get(name) as Float32Array;
      const expected = plainStatistics(values);
      expect(shape.reduce((product, size) => product * size, 1)).toBe(values.length);
      expect(max).toBe(expected.max);
      expect(min).toBe(expected.min);
      expect(mean).toBeCloseTo(expected.mean, 12);
      expect(std).toBeCloseTo(expected.std, 12);
    }
  });

  it("tells the averaged gradient's, before it is clipped", () => {
    const wte = plain.find(({ name }) => name.endsWith("wte.weight"));
    expect(wte?.gradStd).toBeGreaterThan(0);
    for (const { gradStd } of plain) expect(gradStd).toBeGreaterThan(0);
  });

  it.each([1, 2, 3])("tells the same at ZeRO %i as at level 0", async (zero) => {
    expectAlike(await inspect(workspace, { ranks: 2, zero }), plain);
  });

  it.each<[string, RuntimeOptions]>([
    ["a pipeline with the tied embedding at both ends", { ranks: 4, pp: 2, zero: 3, accumulation: 2 }],
    ["split layers and a padded vocabulary", { ranks: 4, tp: 2, zero: 2, accumulation: 2 }],
  ])("reports complete parameters under %s", async (_, options) => {
    const vocab = { vocab: 257 };
    const whole = await inspect(workspace, { ranks: 4, zero: 0 }, vocab);
    // The norm that clips is summed in another order: float32 rounding, of values below 1.
    expectAlike(await inspect(workspace, options, vocab), whole, 7);
  });

  it("finds names by a shell's wildcards", async () => {
    const names = async (pattern: string) =>
      (await inspect(workspace, {}, {}, pattern)).map(({ name }) => name);
    expect(await names("*.1.ln_?.bias")).toEqual(["transformer.h.1.ln_1.bias", "transformer.h.1.ln_2.bias"]);
    expect(await names("transformer.w[!p]e.weight")).toEqual(["transformer.wte.weight"]);
    expect(await names("nothing")).toEqual([]);
  });

  it("shows frozen parameters unchanged and without a gradient", async () => {
    const free = await inspect(workspace, { ranks: 2 }, {}, "*.c_fc.*");
    const frozen = await inspect(workspace, { ranks: 2 }, { frozen: "c_fc.bias" }, "*.c_fc.*");
    for (const [index, summary] of frozen.entries()) {
      if (!summary.name.endsWith("bias")) {
        expect(summary.gradStd).toBeGreaterThan(0);
        continue;
      }
      expect(summary).toMatchObject({ gradStd: 0, gradMean: 0, std: 0, mean: 0 });
      expect(free[index]?.std).toBeGreaterThan(0);
    }
  });

  it("shows a gradient of zero where a layer is not used, the same lines at levels 0 and 3", async () => {
    const tables: (readonly TensorSummary[])[] = [];
    for (const zero of [0, 3]) {
      tables.push(await inspect(workspace, { ranks: 2, zero }, { onlyEmbedding: true, clipNorm: 0 }));
    }
    const [first = ""] = tables.map(formatSummary);
    for (const table of tables) expect(formatSummary(table)).toBe(first);
    for (const { name, gradStd, gradMean } of tables[0] ?? []) {
      expect(gradStd !== 0 || gradMean !== 0).toBe(name.endsWith("wte.weight"));
    }
  });

  it("refuses a pattern that cannot be read, and the run goes on", async () => {
    const seen: string[] = [];
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, steps: 1 });
    let answer: Promise<unknown> = Promise.resolve();
    runtime.events$.subscribe(({ kind }) => {
      seen.push(kind);
      if (kind === "run.started") answer = runtime.inspectModel("h.[0").catch((error: unknown) => error);
    });
    await runtime.run(job, { data: workspace.text, cache: workspace.path("cache") });
    expect(await answer).toMatchObject({ code: "OPTION", fields: { option: "pattern" } });
    expect(seen).toContain("step.finished");
    expect(seen).not.toContain("run.restored");
  });

  it("refuses when no run is under way, and when a run ends before it could answer", async () => {
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, steps: 0 });
    await expect(runtime.inspectModel()).rejects.toMatchObject({ code: "INSPECTION_OVER" });
    let answer: Promise<unknown> = Promise.resolve();
    runtime.events$.subscribe((event) => {
      if (event.kind !== "run.started") return;
      answer = runtime.inspectModel().catch((error: unknown) => error);
    });
    await runtime.run(job, { data: workspace.text, cache: workspace.path("cache") });
    expect(await answer).toMatchObject({ code: "INSPECTION_OVER" });
  });
});

describe("formatSummary", () => {
  it("makes BMTrain's columns: four digits, widths of 20 and 10, the longest name and four more", () => {
    const summary = { std: 0.02, mean: -0.00004, max: 0.08, min: -0.1, gradStd: 1.5, gradMean: 0 };
    expect(
      formatSummary([
        { name: "a.weight", shape: [3, 4], ...summary },
        { name: "a.bias", shape: [4], ...summary },
      ]).split("\n"),
    ).toEqual([
      " name        shape               max       min       std       mean      grad_std  grad_mean",
      " a.weight    (3, 4)              0.0800    -0.1000   0.0200    -0.0000   1.5000    0.0000",
      " a.bias      (4,)                0.0800    -0.1000   0.0200    -0.0000   1.5000    0.0000",
    ]);
  });
});
