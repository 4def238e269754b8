import { Runtime, type RuntimeOptions, type TroupeEvent, tensor } from "../../../src/entries/index.ts";
import type { GeneratedText } from "../../../src/library/models/index.ts";
import type job from "../../fixtures/jobs/invariant.ts";

const url = new URL("../../fixtures/jobs/invariant.ts", import.meta.url);
const prompts = [5, 1, 17, 30].map((length, row) =>
  Array.from({ length }, (_, place) => (7 * place + 11 * row + 3) % 64),
);

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
    given: tensor(texts.map((text) => behindPrompt(text, text.logProbs))),
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

/**
 * Writes, trains on it and writes again.
 * @returns how far the trainer was from what the generator said, of each kind of call
 */
export async function apart(layout: RuntimeOptions, family: string): Promise<number[]> {
  const events: TroupeEvent[] = [];
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, seed: 3, ...layout });
  runtime.events$.subscribe((event) => events.push(event));
  await using model = await runtime.open<typeof job>(url, { family });
  const found: number[] = [];
  for (let round = 0; round < 2; round++) {
    const batch = batchOf(await model.generate(prompts, { samples: 2, maxNewTokens: 20, seed: round }));
    const { rows } = await model.call("logProbs", batch);
    found.push(rows.logProbs.sub(batch.given).mul(batch.written).abs().max().item());
    void model.accumulate("loss", batch);
    await model.step();
  }
  await model.close();
  for (const event of events)
    if (event.kind === "step.finished") found.push(event.metrics?.apart ?? Number.NaN);
  return found;
}

/** A family of test/fixtures/jobs/invariant.ts, and what it computes in. */
export type Kind = readonly [family: string, precision: "fp32" | "bf16" | "amp-bf16"];
/** The families that continue their prompts, in each precision. */
export const kinds: readonly Kind[] = (["fp32", "bf16", "amp-bf16"] as const).flatMap((precision) =>
  ["gpt2", "llama"].map((family): Kind => [family, precision]),
);
