import { describe, expect, test } from "vitest";
import {
  bindRandomness,
  cutBlocks,
  dematerialize,
  materialize,
  Randomness,
} from "../../src/compute/nn/index.ts";
import { scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { shiftRight, T5ForConditionalGeneration, t5Config } from "../../src/library/models/index.ts";
import { feedForwardOf } from "../../src/library/models/t5/config.ts";
import { refusal } from "../tensor/numbers.ts";

const tiny = {
  vocab_size: 32,
  d_model: 12,
  d_kv: 5,
  d_ff: 20,
  num_layers: 2,
  num_decoder_layers: 1,
  num_heads: 3,
};
const ids = (rows: number[][]) => tensor(rows, { dtype: "int64" });
const values = (x: Tensor) => Array.from(x.contiguous().to("float64").toTypedArray() as Float64Array);

describe("the configuration of a T5", () => {
  test("is T5 small where nothing is said: as many layers twice, tied and scaled, the padding token first", () => {
    expect(new T5ForConditionalGeneration().numParameters).toBe(60_506_624);
    expect(t5Config()).toMatchObject({
      num_decoder_layers: 6,
      scale_decoder_outputs: true,
      decoder_start_token_id: 0,
    });
  });

  test("leaves states unscaled if the output layer is untied, unless its configuration says otherwise", () => {
    expect(t5Config({ tie_word_embeddings: false }).scale_decoder_outputs).toBe(false);
    expect(t5Config({ scale_decoder_outputs: false }).tie_word_embeddings).toBe(true);
    const model = new T5ForConditionalGeneration({
      ...tiny,
      feed_forward_proj: "gated-silu",
      tie_word_embeddings: false,
    });
    expect(model.namedParameters().has("lm_head.weight")).toBe(true);
    expect(t5Config(model.configJson)).toEqual(model.config);
  });

  test.each([
    ["relu", "relu", false],
    ["gelu", "gelu", false],
    ["gated-gelu", "gelu_new", true],
    ["gated-silu", "silu", true],
  ] as const)("calls %s what Hugging Face means", (feed_forward_proj, activation, isGated) => {
    expect(feedForwardOf(t5Config({ feed_forward_proj }))).toEqual({ activation, isGated });
  });

  test.each([
    ["three buckets", { relative_attention_num_buckets: 3 }, "at least 4"],
    [
      "buckets beyond the farthest distance",
      { relative_attention_max_distance: 16 },
      "above 16, half the buckets",
    ],
    [
      "a feed-forward layer that is none",
      { feed_forward_proj: "gated" },
      "feed_forward_proj to be one of gelu",
    ],
    ["another family's file", { model_type: "bart" }, 'model_type to be "t5"'],
  ])("refuses %s", (_, fields, message) => {
    expect(() => new T5ForConditionalGeneration({ ...tiny, ...fields })).toThrow(
      expect.objectContaining({ code: "MODEL_CONFIG", message: expect.stringContaining(message) }),
    );
  });
});

describe("a T5", () => {
  test("has the layers of both stacks as blocks, the encoder's first", () => {
    const { blocks, rest } = cutBlocks(new T5ForConditionalGeneration(tiny));
    expect(blocks.map(({ name }) => name)).toEqual(["encoder.block.0", "encoder.block.1", "decoder.block.0"]);
    expect([...rest.keys()]).toEqual([
      "shared.weight",
      "encoder.final_layer_norm.weight",
      "decoder.final_layer_norm.weight",
    ]);
  });

  test("shifts labels right behind the start token, ignored ones as padding", () => {
    scope(() => {
      expect(
        values(
          shiftRight(
            ids([
              [5, 6, -100, -100],
              [7, 8, 9, 1],
            ]),
            3,
            0,
          ),
        ),
      ).toEqual([3, 5, 6, 0, 3, 7, 8, 9]);
    });
  });

  test("reads no padding and no later word, and asks for what the decoder begins with", () => {
    scope(() => {
      const model = new T5ForConditionalGeneration({ ...tiny, dropout_rate: 0 });
      bindRandomness(model, new Randomness(1));
      materialize(model, { seed: 1 });
      const attentionMask = ids([[1, 1, 1, 0]]);
      const logits = (text: number[], written: number[]) =>
        values(
          model.forward({ inputIds: ids([text]), attentionMask, decoderInputIds: ids([written]) })
            .logits as Tensor,
        );
      const before = logits([4, 5, 6, 0], [0, 7, 8]);
      expect(logits([4, 5, 6, 9], [0, 7, 8])).toEqual(before);
      expect(logits([4, 9, 6, 0], [0, 7, 8])).not.toEqual(before);
      const later = logits([4, 5, 6, 0], [0, 7, 9]);
      expect(later.slice(0, 64)).toEqual(before.slice(0, 64));
      expect(later.slice(64)).not.toEqual(before.slice(64));
      const error = refusal(() => model.forward({ inputIds: ids([[4, 5]]) }));
      expect(error).toMatchObject({
        code: "MODEL_INPUT",
        message: expect.stringContaining("labels or decoderInputIds"),
      });
      dematerialize(model);
    });
  });
});
