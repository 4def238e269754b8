import { describe, expect, it } from "vitest";
import { Runtime, type RuntimeOptions, tensor } from "../../../src/entries/index.ts";
import type { GeneratedText } from "../../../src/library/models/index.ts";
import type job from "../../fixtures/jobs/family.ts";
import { SEED } from "./script.ts";

const url = new URL("../../fixtures/jobs/family.ts", import.meta.url);
const prompts = [5, 1, 12, 8].map((length, row) =>
  Array.from({ length }, (_, place) => 4 + ((7 * place + 11 * row) % 92)),
);

const layouts: readonly (readonly [string, RuntimeOptions])[] = [
  ["replicas at level 3", { ranks: 2, zero: 3 }],
  ["tensor parallelism", { ranks: 2, tp: 2 }],
  ["tensor parallelism with split positions", { ranks: 2, tp: 2, sequenceParallel: true }],
  ["pipeline stages", { ranks: 2, pp: 2 }],
  ["stages of one layer each, the encoder's apart", { ranks: 4, pp: 4 }],
  ["stages of two chunks", { ranks: 2, pp: 2, schedule: "interleaved", chunks: 2 }],
  ["replayed blocks", { ranks: 1, graph: "exact" }],
];

/** Writes, trains a step and writes again. */
async function written(layout: RuntimeOptions, family: string): Promise<readonly GeneratedText[]> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, seed: SEED, ...layout });
  await using model = await runtime.open<typeof job>(url, { family, accumulation: 2 });
  const ids = (salt: number) =>
    tensor(
      Array.from({ length: 8 }, (_, row) =>
        Array.from({ length: 12 }, (__, place) => 4 + ((5 * place + 3 * row + salt) % 92)),
      ),
      { dtype: "int64" },
    );
  const texts: GeneratedText[] = [];
  for (let round = 0; round < 2; round++) {
    const asked = { samples: 3, maxNewTokens: 11, slots: 5, stopTokens: [9], seed: round };
    texts.push(...(await model.generate(prompts, asked)));
    texts.push(...(await model.generate(prompts, { numBeams: 2, maxNewTokens: 6, stopTokens: [9] })));
    void model.accumulate("loss", { inputIds: ids(0), labels: ids(5) });
    await model.step({ lr: 1e-2 });
  }
  await model.close();
  return texts;
}

describe.each(["t5", "bart"])("a live %s replies as it does on one rank", (family) => {
  const onOne = written({ ranks: 1 }, family);

  it.each(layouts)("on %s", async (_, layout) => {
    const [expected, found] = [await onOne, await written(layout, family)];
    expect(expected).toHaveLength(2 * (12 + 4));
    expect(found.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
    for (const [row, { logProbs }] of found.entries())
      for (const [index, logProb] of logProbs.entries())
        expect(logProb).toBeCloseTo(expected[row]?.logProbs[index] ?? 0, 4);
  });
});
