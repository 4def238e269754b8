import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dematerialize, evaluating, type Module, materialize } from "../../src/compute/nn/index.ts";
import { liveTensors, noGrad, scope, tensor } from "../../src/compute/tensor/index.ts";
import { Continuation, PagedContinuation } from "../../src/library/models/generation/writer.ts";
import {
  type GenerateOptions,
  GPT2LMHeadModel,
  GPT2MoELMHeadModel,
  generateTexts,
  type LanguageModel,
  LlamaForCausalLM,
} from "../../src/library/models/index.ts";
import { mostInUse, ragged } from "./pages-in-use.ts";

const vocabSize = 64;
const bytes = {
  encode: (text: string) => [...text].map((letter) => letter.charCodeAt(0) - 32),
  decode: (tokens: Iterable<number>) => String.fromCharCode(...[...tokens].map((token) => token + 32)),
};

describe.each([
  [
    "GPT-2",
    () => new GPT2LMHeadModel({ vocab_size: vocabSize, n_positions: 160, n_embd: 48, n_layer: 2, n_head: 3 }),
  ],
  [
    "LLaMA with shared heads and a window",
    () =>
      new LlamaForCausalLM({
        ...{ model_type: "mistral", vocab_size: vocabSize, hidden_size: 48, intermediate_size: 64 },
        ...{ num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12 },
        ...{ max_position_embeddings: 160, sliding_window: 11 },
      }),
  ],
  [
    "GPT-2 with experts",
    () =>
      new GPT2MoELMHeadModel(
        { vocab_size: vocabSize, n_positions: 160, n_embd: 48, n_layer: 2, n_head: 3 },
        // Nothing is dropped: a pass over all of a text is then as its tokens one by one.
        { numExperts: 4, mixture: { k: 2, dropTokens: false } },
      ),
  ],
])("texts of any lengths: %s", (_, make) => {
  const model: Module & LanguageModel = make();
  beforeAll(() => materialize(model, { seed: 5 }));
  afterAll(() => dematerialize(model));

  const prompts = [5, 1, 17, 8, 30, 16, 9].map((length, row) =>
    Array.from({ length }, (__, place) => (7 * place + 11 * row + 3) % vocabSize),
  );
  const options: GenerateOptions = { maxNewTokens: 20, samples: 3, seed: 7, temperature: 0.9, topK: 40 };

  /** The log-probabilities of a text's last tokens by a pass over all of it. */
  const logProbsOf = (prompt: readonly number[], tokens: readonly number[]) =>
    evaluating(model, () =>
      noGrad(() =>
        scope(() => {
          const ids = tensor([[...prompt, ...tokens]], { dtype: "int64" });
          const all = model.forward(ids).logits.select(0, 0).logSoftmax(-1);
          return tokens.map((token, index) =>
            all
              .select(0, prompt.length + index - 1)
              .select(0, token)
              .item(),
          );
        }),
      ),
    );

  test("draws are the same alone, in other company, and with few slots", () => {
    const texts = generateTexts(model, prompts, options);
    expect(texts).toHaveLength(21);
    expect(new Set(texts.map(({ tokens }) => tokens.join())).size).toBe(21);
    const before = liveTensors();
    const few = generateTexts(model, prompts, { ...options, slots: 2 });
    expect(liveTensors()).toBe(before);
    expect(few.map(({ tokens }) => tokens)).toEqual(texts.map(({ tokens }) => tokens));
    for (const [index, prompt] of prompts.entries()) {
      const alone = generateTexts(model, [prompt], { ...options, samples: 2, firstPrompt: index });
      expect(alone.map(({ tokens }) => tokens)).toEqual(
        texts.slice(3 * index, 3 * index + 2).map(({ tokens }) => tokens),
      );
    }
  });

  test("tells the log-probabilities that a pass over all of the text gives", () => {
    for (const [row, { tokens, logProbs }] of generateTexts(model, prompts, options).entries()) {
      const expected = logProbsOf(prompts[Math.floor(row / 3)] ?? [], tokens);
      expect(logProbs).toHaveLength(tokens.length);
      for (const [index, logProb] of logProbs.entries()) expect(logProb).toBeCloseTo(expected[index] ?? 0, 4);
    }
  });

  test("ends at stop tokens and stop texts, and decodes what is before", () => {
    const texts = generateTexts(model, ["HELLO", "A"], { ...options, tokenizer: bytes });
    const pair = texts[0]?.text?.slice(4, 6) as string;
    const stopped = generateTexts(model, ["HELLO", "A"], { ...options, tokenizer: bytes, stopTexts: [pair] });
    for (const [row, { text = "", tokens, logProbs }] of stopped.entries()) {
      const free = texts[row]?.text ?? "";
      expect(text).toBe(free.includes(pair) ? free.slice(0, free.indexOf(pair)) : free);
      expect(tokens).toEqual(texts[row]?.tokens.slice(0, tokens.length));
      expect(tokens).toHaveLength(text.length + (free.includes(pair) ? 2 : 0));
      expect(logProbs).toHaveLength(tokens.length);
    }
    const stopToken = texts[1]?.tokens[3] as number;
    const [, second] = generateTexts(model, ["HELLO", "A"], {
      ...options,
      tokenizer: bytes,
      stopTokens: [stopToken],
    });
    expect(second?.tokens.at(-1)).toBe(stopToken);
    expect(second?.text).toHaveLength((second?.tokens.length ?? 0) - 1);
    expect(() => generateTexts(model, ["HELLO"], options)).toThrow(/expected a tokenizer for prompts/);
  });

  test("passes on each token as it is chosen", () => {
    const seen = new Map<string, number[]>();
    const onToken = ({ prompt, sample, token }: { prompt: number; sample: number; token: number }) => {
      const name = `${prompt}.${sample}`;
      seen.set(name, [...(seen.get(name) ?? []), token]);
    };
    const texts = generateTexts(model, prompts, { ...options, onToken });
    expect(texts.map((__, row) => seen.get(`${Math.floor(row / 3)}.${row % 3}`))).toEqual(
      texts.map(({ tokens }) => tokens),
    );
  });

  test("slides over texts longer than the context", () => {
    const long = generateTexts(model, [prompts[4] ?? []], {
      maxNewTokens: 140,
      temperature: 0,
      stopTokens: [],
    });
    const text = [...(prompts[4] ?? []), ...(long[0]?.tokens ?? [])];
    expect(text).toHaveLength(170);
    expect(long[0]?.logProbs.at(-1)).toBeCloseTo(
      noGrad(() =>
        scope(() =>
          evaluating(model, () =>
            model
              .forward(tensor([text.slice(-161, -1)], { dtype: "int64" }), { logitsToKeep: 1 })
              .logits.view([-1])
              .logSoftmax(-1)
              .select(0, text.at(-1) as number)
              .item(),
          ),
        ),
      ),
      4,
    );
  });

  test("beams are the same alone and in company, and leave nothing behind", () => {
    const before = liveTensors();
    const beams = { numBeams: 3, maxNewTokens: 12, stopTokens: [5, 9] };
    const texts = generateTexts(model, prompts, beams);
    expect(generateTexts(model, [prompts[4] ?? []], beams)).toEqual([texts[4]]);
    expect(liveTensors()).toBe(before);
  });

  test("rows in pages have the logits of padded rows, as they are selected and slide over the context", () => {
    const long = Array.from({ length: 157 }, (__, place) => (place * 13) % vocabSize);
    const rows = [long, long, prompts[0] ?? [], prompts[0] ?? []];
    const options = { padToken: 0, maxNewTokens: 8 };
    evaluating(model, () => {
      using paged = new PagedContinuation(model, rows, options);
      using padded = new Continuation(model, rows, options);
      let texts = rows;
      for (let step = 0; step < 6; step++) {
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

  test.each([32, 80])(
    "keeps keys and values in little more memory than texts of %i tokens need",
    (length) => {
      const many = ragged(vocabSize);
      const { bytes: bytesMost, numPositions: positionsMost, numEnded } = mostInUse(model, many, length);
      expect(numEnded).toBe(96);
      const headWidths = model instanceof LlamaForCausalLM ? 24 : 48;
      const bytesOfPosition = 2 * 2 * headWidths * 4; // layers, keys and values, float32
      expect(bytesMost / (positionsMost * bytesOfPosition)).toBeLessThan(1.1);
      // Alone, each sample would have its prompt's pages for itself.
      const alone = many.reduce((sum, prompt) => sum + 4 * (prompt.length + length), 0) * bytesOfPosition;
      expect(bytesMost).toBeLessThan(0.8 * alone);
    },
  );
});
