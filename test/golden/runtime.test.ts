import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunResult, Runtime, type RuntimeOptions, SafetensorsFile } from "../../src/index.ts";
import { type Golden, goldenPath, openGolden } from "./golden.ts";

const path = goldenPath("gpt2");
const job = new URL("../fixtures/jobs/golden.ts", import.meta.url);

/** Largest difference, relative to the largest expected value. */
function relativeError(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  let most = 0;
  let largest = 0;
  for (let index = 0; index < expected.length; index++) {
    most = Math.max(most, Math.abs((got[index] ?? Number.NaN) - (expected[index] as number)));
    largest = Math.max(largest, Math.abs(expected[index] as number));
  }
  return got.length === expected.length ? most / largest : Number.POSITIVE_INFINITY;
}

// Skipped where the reference states are not beside the repository.
describe.skipIf(path === undefined)("the runtime trains Hugging Face's reference GPT-2", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-golden-"));
  let golden: Golden;
  beforeAll(async () => {
    golden = await openGolden(path as string);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    for (const tensor of golden.state.values()) tensor.dispose();
    await golden.folder.close();
  });
  const expected = (name: string) => golden.state.get(name)?.toTypedArray() as Float32Array;

  async function run(
    options: RuntimeOptions,
    config: Record<string, unknown>,
  ): Promise<RunResult & { losses: number[] }> {
    const losses: number[] = [];
    const runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
    runtime.events$.subscribe((event) => {
      if (event.kind === "step.finished") losses.push(event.lossNats);
    });
    try {
      return {
        ...(await runtime.run(job, { folder: path, batch: 3 * (options.ranks ?? 1), ...config })),
        losses,
      };
    } finally {
      await runtime.stop();
    }
  }

  const layouts = [
    { ranks: 1, zero: 0 },
    { ranks: 1, zero: 3 },
    { ranks: 2, zero: 0 },
    { ranks: 2, zero: 1 },
    { ranks: 2, zero: 2 },
    { ranks: 2, zero: 3 },
  ];
  const onLayout = "on $ranks rank(s) at level $zero";

  it.each(layouts)(
    `to its ten AdamW losses within 1e-4 and every gradient within 1e-5, ${onLayout}`,
    async (layout) => {
      const dir = join(folder, `${layout.ranks}-${layout.zero}`);
      const { losses } = await run({ ...layout, checkpoint: { dir, everySteps: 1 } }, { steps: 10 });
      expect(relativeError(losses, golden.recipe.losses)).toBeLessThan(1e-4);
      expect(relativeError(losses.slice(0, 1), golden.recipe.losses.slice(0, 1))).toBeLessThan(1e-5);
      await using moments = await SafetensorsFile.open(join(dir, "step-000001", "optimizer.safetensors"));
      const gradients = [...golden.state.keys()].filter((name) => name.startsWith("grad."));
      expect(gradients.length).toBeGreaterThan(30);
      for (const name of gradients) {
        const bytes = await moments.read(`exp_avg.${name.slice("grad.".length)}`);
        // After one step AdamW's first moment is the gradient times 1 - beta1.
        const gradient = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4).map(
          (value) => value / 0.1,
        );
        expect(relativeError(gradient, expected(name)), name).toBeLessThan(1e-5);
      }
    },
  );

  it.each(layouts)(`to its ten clipped losses within 1e-4, ${onLayout}`, async (layout) => {
    const { losses } = await run(layout, { steps: 10, clipNorm: 1 });
    expect(relativeError(losses, golden.recipe.losses_clip_1)).toBeLessThan(1e-4);
  });

  it.each(layouts)(`with the logits within 1e-5, ${onLayout}`, async (layout) => {
    const ids = [...(golden.state.get("input.input_ids")!.toTypedArray() as BigInt64Array)].map(Number);
    const rows = [0, 1, 2].map((row) => ids.slice(row * (ids.length / 3), (row + 1) * (ids.length / 3)));
    const { sample } = await run(layout, { steps: 0, ids: JSON.stringify(rows) });
    expect(relativeError(JSON.parse(sample ?? "[]"), expected("output.logits"))).toBeLessThan(1e-5);
  });
});
