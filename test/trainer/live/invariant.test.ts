import { describe, expect, it } from "vitest";
import { Runtime, type RuntimeOptions, type TroupeEvent, tensor } from "../../../src/entries/index.ts";
import type { GeneratedText } from "../../../src/library/models/index.ts";
import type job from "../../fixtures/jobs/invariant.ts";

const url = new URL("../../fixtures/jobs/invariant.ts", import.meta.url);
const prompts = [5, 1, 17, 30].map((length, row) =>
  Array.from({ length }, (_, place) => (7 * place + 11 * row + 3) % 64),
);

const layouts: readonly (readonly [string, RuntimeOptions])[] = [
  ["one rank", { ranks: 1 }],
  ["replicas", { ranks: 2, zero: 0 }],
  ["ZeRO 3", { ranks: 2, zero: 3 }],
  ["tensor parallelism", { ranks: 2, tp: 2 }],
  ["tensor parallelism with split positions", { ranks: 2, tp: 2, sequenceParallel: true, overlapChunks: 2 }],
  ["pipeline stages", { ranks: 2, pp: 2 }],
  ["recomputed blocks", { ranks: 1, recompute: true }],
];

/** The texts, two of each prompt, as a batch that is padded on the right. */
function batchOf(texts: readonly GeneratedText[]) {
  const longest = Math.max(...texts.map(({ sequence }) => sequence.length));
  const padded = (row: readonly number[], end: number) => [
    ...row,
    ...new Array<number>(end - row.length).fill(0),
  ];
  const behindPrompt = ({ sequence, tokens }: GeneratedText, values: readonly number[]) =>
    padded([...new Array<number>(sequence.length - tokens.length - 1).fill(0), ...values], longest - 1);
  const read = prompts.flatMap((prompt) => [prompt, prompt]);
  const longestRead = Math.max(...read.map(({ length }) => length));
  const integers = (rows: readonly (readonly number[])[]) => tensor(rows, { dtype: "int64" });
  return {
    tokens: integers(texts.map(({ sequence }) => padded(sequence, longest))),
    told: tensor(texts.map((text) => behindPrompt(text, text.logProbs))),
    written: tensor(
      texts.map((text) =>
        behindPrompt(
          text,
          text.tokens.map(() => 1),
        ),
      ),
    ),
    read: integers(read.map((row) => padded(row, longestRead))),
    present: integers(
      read.map((row) =>
        padded(
          row.map(() => 1),
          longestRead,
        ),
      ),
    ),
  };
}

/** Writes, trains on it and writes again. @returns how far the trainer was from what the generator said, of each kind of call */
async function apart(layout: RuntimeOptions, family: string): Promise<number[]> {
  const events: TroupeEvent[] = [];
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, seed: 3, ...layout });
  runtime.events$.subscribe((event) => events.push(event));
  await using model = await runtime.open<typeof job>(url, { family });
  const found: number[] = [];
  for (let round = 0; round < 2; round++) {
    const batch = batchOf(await model.generate(prompts, { samples: 2, maxNewTokens: 20, seed: round }));
    const { rows } = await model.call("logProbs", batch);
    found.push(rows.logProbs.sub(batch.told).mul(batch.written).abs().max().item());
    void model.accumulate("loss", batch);
    await model.step();
  }
  await model.close();
  for (const event of events)
    if (event.kind === "step.finished") found.push(event.metrics?.apart ?? Number.NaN);
  return found;
}

type Kind = readonly [family: string, precision: "fp32" | "bf16" | "amp-bf16"];
const kinds: readonly Kind[] = (["fp32", "bf16", "amp-bf16"] as const).flatMap((precision) =>
  ["gpt2", "llama"].map((family): Kind => [family, precision]),
);

describe("an invariant generator and its trainer agree to the last bit", () => {
  it.each(layouts.flatMap(([name, layout]) => kinds.map((kind) => [...kind, name, layout] as const)))(
    "%s in %s: %s",
    async (family, precision, _, layout) => {
      expect(await apart({ ...layout, precision, invariant: true }, family)).toEqual([0, 0, 0, 0]);
    },
  );

  it.each(
    layouts.map(
      ([name, layout], index) => [(["fp32", "bf16"] as const)[index % 2] ?? "fp32", name, layout] as const,
    ),
  )("replies of T5 in %s: %s", async (precision, _, layout) => {
    expect(await apart({ ...layout, precision, invariant: true }, "t5")).toEqual([0, 0, 0, 0]);
  });

  // Each layout with two of the six, and each of these with some.
  it.each(
    layouts.flatMap(([name, layout], index) =>
      [index % 6, (index + 3) % 6].map((kind) => [...(kinds[kind] as Kind), name, layout] as const),
    ),
  )("%s in %s on the pretended device: %s", async (family, precision, _, layout) => {
    expect(await apart({ ...layout, precision, invariant: true, device: "sim" }, family)).toEqual([
      0, 0, 0, 0,
    ]);
  });

  it("which they do not otherwise", async () => {
    for (const device of ["cpu", "sim"])
      expect(Math.max(...(await apart({ ranks: 1, device }, "gpt2")))).toBeGreaterThan(0);
  });
});
