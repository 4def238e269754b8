import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { dematerialize, evaluating, materialize, Pages } from "../../src/compute/nn/index.ts";
import { liveTensors, noGrad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { PagedContinuation, Reply } from "../../src/library/models/generation/writer.ts";
import {
  BartForConditionalGeneration,
  type GenerateOptions,
  generateTexts,
  T5ForConditionalGeneration,
} from "../../src/library/models/index.ts";
import { mostInUse, ragged } from "./pages-in-use.ts";

const vocabSize = 64;
const t5 = {
  ...{ vocab_size: vocabSize, d_model: 48, d_kv: 12, d_ff: 64, num_layers: 2, num_heads: 3 },
  // Texts are longer than the distances that have biases of their own.
  ...{ relative_attention_num_buckets: 8, relative_attention_max_distance: 20, dropout_rate: 0 },
};
const bart = {
  ...{ vocab_size: vocabSize, d_model: 48, encoder_layers: 2, decoder_layers: 2, dropout: 0 },
  ...{ encoder_attention_heads: 3, decoder_attention_heads: 4, encoder_ffn_dim: 64, decoder_ffn_dim: 64 },
  // Weights so large that attention is far from even.
  ...{ max_position_embeddings: 160, init_std: 0.15, pad_token_id: 1, decoder_start_token_id: 2 },
};

const families = {
  T5: () => new T5ForConditionalGeneration({ ...t5, num_decoder_layers: 3 }),
  "T5 with gates and an output layer": () =>
    new T5ForConditionalGeneration({ ...t5, feed_forward_proj: "gated-gelu", tie_word_embeddings: false }),
  BART: () => new BartForConditionalGeneration(bart),
  Blenderbot: () => new BartForConditionalGeneration({ ...bart, model_type: "blenderbot" }),
};

const prompts = [5, 1, 17, 8, 30, 16, 9].map((length, row) =>
  Array.from({ length }, (_, place) => (7 * place + 11 * row + 3) % vocabSize),
);
const drawn: GenerateOptions = { maxNewTokens: 30, samples: 3, seed: 7, temperature: 0.9, topK: 40 };
const tokensOf = (texts: readonly { readonly tokens: readonly number[] }[]) =>
  texts.map(({ tokens }) => tokens);

describe.each(Object.keys(families))("replies of %s", (name) => {
  const model = families[name as keyof typeof families]();
  beforeAll(() => materialize(model, { seed: 5 }));
  afterAll(() => dematerialize(model));
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** The log-probabilities of the tokens after `begun`, by a pass over all of the prompt and the text. */
  const logProbsOf = (prompt: readonly number[], begun: readonly number[], tokens: readonly number[]) =>
    evaluating(model, () =>
      noGrad(() =>
        scope(() => {
          const row = (ids: readonly number[]) => tensor([[...ids]], { dtype: "int64" });
          const decoderInputIds = row([...begun, ...tokens]);
          const { logits } = model.forward({ inputIds: row(prompt), decoderInputIds });
          const all = (logits as Tensor).select(0, 0).logSoftmax(-1).toTypedArray() as Float32Array;
          return tokens.map((token, index) => all[(begun.length + index - 1) * vocabSize + token] as number);
        }),
      ),
    );

  /** All texts by the cache of padded rows: a model that does not pack has no pages. */
  const byPaddedRows = (options: GenerateOptions) => {
    const passes = vi.spyOn(Pages.prototype, "pass").mockClear();
    Object.assign(model, { packs: false });
    try {
      return generateTexts(model, prompts, options);
    } finally {
      Object.assign(model, { packs: true });
      expect(passes).not.toHaveBeenCalled();
    }
  };

  test("have the log-probabilities that a pass over all of prompt and text gives", () => {
    const passes = vi.spyOn(Pages.prototype, "pass");
    for (const options of [drawn, { ...drawn, temperature: 0, samples: 1 }]) {
      const texts = generateTexts(model, prompts, options);
      expect(passes).toHaveBeenCalled();
      for (const [row, { sequence, tokens, logProbs }] of texts.entries()) {
        const begun = sequence.slice(0, 1);
        const prompt = prompts[Math.floor(row / (options.samples ?? 1))] ?? [];
        const expected = logProbsOf(prompt, begun, tokens);
        expect(logProbs).toHaveLength(tokens.length);
        for (const [index, logProb] of logProbs.entries())
          expect(logProb).toBeCloseTo(expected[index] ?? 0, 4);
        if (options.temperature === 0) expect(Math.min(...logProbs)).toBeGreaterThan(-Math.log(vocabSize));
      }
    }
  });

  test("are those of padded rows: drawn, most likely, and by beams", () => {
    for (const options of [
      { ...drawn, stopTokens: [3, 40] },
      { ...drawn, temperature: 0, samples: 1, repetitionPenalty: 1.3 },
      { maxNewTokens: 12, numBeams: 3, stopTokens: [5, 9], forcedFirstToken: 8 },
    ]) {
      const texts = generateTexts(model, prompts, options);
      const padded = byPaddedRows(options);
      expect(tokensOf(texts)).toEqual(tokensOf(padded));
      for (const [row, { logProbs }] of texts.entries())
        for (const [index, logProb] of logProbs.entries())
          expect(logProb).toBeCloseTo(padded[row]?.logProbs[index] ?? 0, 4);
    }
  });

  test("are the same alone, in other company and with few slots, and leave nothing behind", () => {
    const texts = tokensOf(generateTexts(model, prompts, drawn));
    expect(new Set(texts.map((tokens) => tokens.join())).size).toBeGreaterThan(15);
    const before = liveTensors();
    for (const slots of [1, 2, 4])
      expect(tokensOf(generateTexts(model, prompts, { ...drawn, slots }))).toEqual(texts);
    for (const [index, prompt] of prompts.entries()) {
      const alone = generateTexts(model, [prompt], { ...drawn, samples: 2, firstPrompt: index });
      expect(tokensOf(alone)).toEqual(texts.slice(3 * index, 3 * index + 2));
    }
    generateTexts(model, prompts, { maxNewTokens: 6, numBeams: 3 });
    expect(liveTensors()).toBe(before);
  });

  test("read each prompt once, whatever is written", () => {
    const forward = model.forward.bind(model);
    const read: number[] = [];
    vi.spyOn(model, "forward").mockImplementation((batch) => {
      read.push(batch.inputIds.shape[1] ?? 0);
      return forward(batch);
    });
    generateTexts(model, prompts, { ...drawn, slots: 5 });
    expect(read.reduce((sum, length) => sum + length, 0)).toBe(prompts.flat().length);
    const many = prompts.flatMap((prompt) => Array.from({ length: 20 }, (_, row) => [...prompt, row]));
    read.length = 0;
    generateTexts(model, many, { maxNewTokens: 2, seed: 1 });
    expect(read.reduce((sum, length) => sum + length, 0)).toBe(many.flat().length);
    expect(Math.max(...read)).toBeGreaterThan(990);
    expect(Math.max(...read)).toBeLessThanOrEqual(1024);
  });

  test("in rows have the logits of padded rows, as they are selected", () => {
    const rows = [prompts[4], prompts[4], prompts[0], prompts[0]] as (readonly number[])[];
    const options = { padToken: 0, maxNewTokens: 12 };
    evaluating(model, () => {
      using paged = new PagedContinuation(model, rows, options);
      using padded = new Reply(model, rows, options);
      let texts = paged.begun;
      expect(padded.begun).toEqual(texts);
      for (let step = 0; step < 12; step++) {
        scope(() => {
          const [ours, other] = [paged.next(texts), padded.next(texts)];
          expect(ours.sub(other).abs().max().item()).toBeLessThan(1e-4);
        });
        const order = [step % 2, 0, 2 + (step % 2), 3];
        for (const writer of [paged, padded]) writer.select(order);
        texts = order.map((row, place) => [...(texts[row] ?? []), (7 * step + place) % vocabSize]);
      }
    });
  });

  test.each([32, 80])("of %i tokens take little more memory than their keys and values need", (length) => {
    const many = ragged(vocabSize);
    const { bytes: bytesMost, numPositions: positionsMost, numEnded } = mostInUse(model, many, length);
    expect(numEnded).toBe(96);
    const [numLayers, width] = name === "T5" ? [3, 36] : [2, name.startsWith("T5") ? 36 : 48];
    const bytesOfPosition = 2 * numLayers * width * 4; // keys and values, float32
    // The last token of a text has none, and its first is none of these. Not all prompts are read in one pass.
    const all = many.flat().length + 96 * length;
    expect(positionsMost).toBeGreaterThan(0.97 * all);
    expect(positionsMost).toBeLessThanOrEqual(all);
    expect(bytesMost / (positionsMost * bytesOfPosition)).toBeLessThan(1.1);
  });
});

test("a BART slides over texts longer than its decoder has positions", () => {
  const model = new BartForConditionalGeneration({ ...bart, max_position_embeddings: 24 });
  materialize(model, { seed: 5 });
  const [prompt = []] = prompts;
  const [text] = generateTexts(model, [prompt], { maxNewTokens: 40, temperature: 0, stopTokens: [] });
  const window = text?.sequence.slice(-25, -1) ?? [];
  const last = noGrad(() =>
    scope(() =>
      evaluating(model, () => {
        const row = (ids: readonly number[]) => tensor([[...ids]], { dtype: "int64" });
        const { logits } = model.forward({ inputIds: row(prompt), decoderInputIds: row(window) });
        return (logits as Tensor)
          .select(1, 23)
          .logSoftmax(-1)
          .select(1, text?.tokens.at(-1) as number)
          .item();
      }),
    ),
  );
  expect(text?.logProbs.at(-1)).toBeCloseTo(last, 4);
  dematerialize(model);
});

test("packed texts are refused outside of generation, where a decoder would read all of them", () => {
  for (const make of Object.values(families)) {
    const model = make();
    const ids = (values: number[], shape: number[]) => tensor(values, { dtype: "int64", shape });
    materialize(model, { seed: 5 });
    scope(() => {
      const inputIds = ids([3, 4, 5, 6], [1, 4]);
      const batch = { inputIds, segments: ids([0, 2, 4], [3]), labels: ids([7, 8], [1, 2]) };
      expect(() => model.forward(batch)).toThrow(/packed texts only while text is written/);
    });
    dematerialize(model);
  }
});
