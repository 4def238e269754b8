import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dematerialize, evaluating, type Module, materialize } from "../../src/compute/nn/index.ts";
import { tokenLogProbs } from "../../src/compute/objectives/index.ts";
import { scope, setInvariant, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import {
  BartForConditionalGeneration,
  type GeneratedText,
  type GenerativeModel,
  type GPT2LMHeadModel,
  generateTexts,
  T5ForConditionalGeneration,
} from "../../src/library/models/index.ts";
import { drawn, families, logProbsByTrainer, prompts } from "./invariant-texts.ts";

const options = { samples: 2, maxNewTokens: 19, seed: 4, stopTokens: [3, 40] };

/** Expects that each prompt's texts are the same when it is alone, and when few are written at a time. */
function expectSameInAnyCompany(model: GenerativeModel, texts: readonly GeneratedText[]): void {
  expect(generateTexts(model, prompts, { ...options, slots: 3 })).toEqual(texts);
  for (const [index, prompt] of prompts.entries())
    expect(generateTexts(model, [prompt], { ...options, firstPrompt: index })).toEqual(
      texts.slice(2 * index, 2 * index + 2),
    );
}

describe.each(
  Object.keys(families).flatMap((name) =>
    (["float32", "bfloat16"] as const).map((dtype) => [name, dtype] as const),
  ),
)("an invariant forward of %s in %s", (name, dtype) => {
  const model = families[name]?.() as Module & GPT2LMHeadModel;
  let texts: readonly GeneratedText[] = [];

  beforeAll(() => {
    materialize(model, { seed: 5, dtype });
  });
  afterAll(() => dematerialize(model));
  beforeEach(() => {
    setInvariant(true);
    texts = generateTexts(model, prompts, options);
  });
  afterEach(() => {
    setInvariant(false);
  });

  const byTrainer = (rows: readonly GeneratedText[], isPacked = false) =>
    logProbsByTrainer(model, rows, isPacked);

  test("gives what is drawn the log-probabilities that a trainer finds, to the bit", () => {
    expect(byTrainer(texts)).toEqual(drawn(texts));
    expect(byTrainer(texts, true)).toEqual(drawn(texts));
    for (const text of texts.slice(0, 3)) expect(byTrainer([text])).toEqual(drawn([text]));
  });

  test("writes the same alone and with few slots", () => {
    expectSameInAnyCompany(model, texts);
  });

  test("needs its rows' own order: without it some bits differ", () => {
    setInvariant(false);
    const plain = generateTexts(model, prompts, options);
    expect(byTrainer(plain)).not.toEqual(drawn(plain));
  });
});

const t5 = {
  ...{ vocab_size: 64, d_model: 48, d_kv: 12, d_ff: 72, num_layers: 2, num_heads: 3, dropout_rate: 0 },
  // Texts are longer than the distances that have biases of their own.
  ...{ relative_attention_num_buckets: 8, relative_attention_max_distance: 12 },
};
const bart = {
  ...{ vocab_size: 64, d_model: 48, encoder_layers: 2, decoder_layers: 2, dropout: 0, pad_token_id: 1 },
  ...{ encoder_attention_heads: 3, decoder_attention_heads: 4, encoder_ffn_dim: 64, decoder_ffn_dim: 64 },
  ...{ max_position_embeddings: 160, init_std: 0.15, decoder_start_token_id: 2 },
};
const encoderDecoders = {
  T5: () => new T5ForConditionalGeneration(t5),
  "T5 with gates of gelu": () => new T5ForConditionalGeneration({ ...t5, feed_forward_proj: "gated-gelu" }),
  BART: () => new BartForConditionalGeneration(bart),
  Blenderbot: () => new BartForConditionalGeneration({ ...bart, model_type: "blenderbot" }),
};

describe.each(
  Object.keys(encoderDecoders).flatMap((name) =>
    (["float32", "bfloat16"] as const).map((dtype) => [name, dtype] as const),
  ),
)("invariant replies of %s in %s", (name, dtype) => {
  const model = encoderDecoders[name as keyof typeof encoderDecoders]();

  beforeAll(() => {
    materialize(model, { seed: 5, dtype });
  });
  afterAll(() => dematerialize(model));
  beforeEach(() => {
    setInvariant(true);
  });
  afterEach(() => {
    setInvariant(false);
  });

  /** The log-probabilities of replies by a recorded forward over rows padded to one length. */
  const byTrainer = (replies: readonly (readonly [prompt: readonly number[], reply: GeneratedText])[]) =>
    evaluating(model, () =>
      scope(() => {
        const padded = (rows: readonly (readonly number[])[]) => {
          const longest = Math.max(...rows.map(({ length }) => length));
          return tensor(
            rows.map((row) => [...row, ...new Array<number>(longest - row.length).fill(0)]),
            { dtype: "int64" },
          );
        };
        const read = replies.map(([prompt]) => prompt);
        const ids = padded(replies.map(([, { sequence }]) => sequence));
        const { logits } = model.forward({
          inputIds: padded(read),
          attentionMask: padded(read.map((row) => row.map(() => 1))),
          decoderInputIds: ids,
        });
        const count = (ids.shape[1] ?? 0) - 1;
        const logProbs = tokenLogProbs((logits as Tensor).narrow(1, 0, count), ids.narrow(1, 1, count));
        expect(logProbs.requiresGrad).toBe(true);
        return replies.map(([, { sequence, tokens }], row) => [
          ...logProbs
            .detach()
            .select(0, row)
            .narrow(0, sequence.length - tokens.length - 1, tokens.length)
            .toTypedArray(),
        ]);
      }),
    );
  const write = () =>
    generateTexts(model, prompts, options).map(
      (reply, index) => [prompts[Math.floor(index / 2)] ?? [], reply] as const,
    );

  test("have the log-probabilities that a trainer finds, to the bit", () => {
    const replies = write();
    expect(byTrainer(replies)).toEqual(drawn(replies.map(([, text]) => text)));
    for (const reply of replies) expect(byTrainer([reply])).toEqual(drawn([reply[1]]));
  });

  test("are the same alone and with few slots", () => {
    expectSameInAnyCompany(model, generateTexts(model, prompts, options));
  });

  test("differ in some bits without rows' own order", () => {
    setInvariant(false);
    const replies = write();
    expect(replies.flatMap((reply) => byTrainer([reply]))).not.toEqual(
      drawn(replies.map(([, text]) => text)),
    );
  });
});
