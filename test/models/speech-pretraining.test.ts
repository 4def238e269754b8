import { describe, expect, test } from "vitest";
import { dematerialize, materialize, Randomness, streamOf } from "../../src/compute/nn/index.ts";
import { backward, empty, noGrad, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { maskFrames } from "../../src/library/data/index.ts";
import { GumbelQuantizer, Wav2Vec2ForCTC, Wav2Vec2ForPreTraining } from "../../src/library/models/index.ts";
import { wav2vec2Config } from "../../src/library/models/wav2vec2/config.ts";
import { numbers } from "../tensor/numbers.ts";

const [GROUPS, CODES, FRAME] = [2, 3, 4];
const config = wav2vec2Config({
  conv_dim: [FRAME],
  conv_kernel: [3],
  conv_stride: [2],
  num_codevector_groups: GROUPS,
  num_codevectors_per_group: CODES,
  codevector_dim: 2,
});

function quantizer(seed = 3): { made: GumbelQuantizer; randomness: Randomness } {
  const made = new GumbelQuantizer(config);
  materialize(made, { seed: 5 });
  const randomness = new Randomness(seed);
  made.bind(randomness, "quantizer");
  return { made, randomness };
}

const gradientOf = ({ weight_proj }: GumbelQuantizer) => numbers(weight_proj.weight.tensor.grad as Tensor);

const framesOf = (count: number) =>
  tensor(
    Float32Array.from({ length: count * FRAME }, (_, place) => Math.sin(place * 1.7)),
    {
      shape: [1, count, FRAME],
    },
  );

describe("codes of frames", () => {
  test("are drawn while training as often as the frame's own shares say", () => {
    const { made } = quantizer();
    const rounds = 4000;
    scope(() => {
      const frame = framesOf(1);
      const shares = numbers(made.weight_proj.forward(frame).view([GROUPS, CODES]).softmax(-1));
      const codes = numbers(made.forward(frame.expand([1, rounds, FRAME]).contiguous(), undefined).codes);
      for (let code = 0; code < CODES; code++) {
        const first = codes.filter((each) => Math.floor(each / CODES) === code).length / rounds;
        const second = codes.filter((each) => each % CODES === code).length / rounds;
        // Three deviations of a share of 4,000 draws are at most 0.024.
        expect(Math.abs(first - (shares[code] ?? 0))).toBeLessThan(0.024);
        expect(Math.abs(second - (shares[CODES + code] ?? 0))).toBeLessThan(0.024);
      }
    });
    dematerialize(made);
  });

  test("codes are hard while training, with the gradients of their soft shares", () => {
    const { made } = quantizer();
    const count = 5;
    scope(() => {
      const table = made.codevectors.tensor.view([GROUPS, CODES, -1]);
      const { vectors, codes } = made.forward(framesOf(count), undefined);
      // The vector is one row of each codebook.
      for (const [frame, code] of numbers(codes).entries()) {
        const [first, second] = [Math.floor(code / CODES), code % CODES];
        const rows = [table.select(0, 0).select(0, first), table.select(0, 1).select(0, second)];
        const taken = numbers(vectors.select(0, 0).select(0, frame));
        // A hard share is 1 − soft + soft, to the last bit of float32.
        expect(
          taken.map(
            (value, place) => Math.abs(value - (rows.flatMap((row) => numbers(row))[place] ?? 0)) < 1e-6,
          ),
        ).not.toContain(false);
      }
      const weights = ops.sin(vectors.detach().mul(3)); // a loss that is not the same for all
      backward(vectors.mul(weights).sum());
      const got = gradientOf(made);

      // The same with shares in place of codes, of the very noise that was drawn.
      for (const { tensor: parameter } of made.parameters()) parameter.grad = null;
      const logits = made.weight_proj.forward(framesOf(count)).view([-1, GROUPS, CODES]);
      const drawn = noGrad(() =>
        ops.troupe.philoxUniform_(empty([count, GROUPS, CODES]), 0, 1, 3, streamOf("quantizer@0.0"), 0),
      );
      const noise = drawn
        .clamp(2 ** -24)
        .log()
        .neg()
        .log()
        .neg();
      const soft = logits.add(noise).div(made.temperature).softmax(-1); // [N, G, V]
      const mixed = soft.transpose(0, 1).matmul(table).transpose(0, 1).reshape([1, count, -1]);
      backward(mixed.mul(weights).sum());
      const expected = gradientOf(made);
      const largest = Math.max(...expected.map(Math.abs));
      expect(largest).toBeGreaterThan(1e-3);
      for (const [place, value] of got.entries())
        expect(Math.abs(value - (expected[place] ?? 0)) / largest).toBeLessThan(1e-5);
      for (const { tensor: parameter } of made.parameters()) parameter.grad = null;
    });
    dematerialize(made);
  });

  test("are the same for the same seed, step and micro-batch, and else not", () => {
    const { made, randomness } = quantizer();
    const codesAt = (microBatch: number) => {
      randomness.microBatch = microBatch;
      return scope(() => numbers(made.forward(framesOf(40), undefined).codes));
    };
    expect(codesAt(1)).toEqual(codesAt(1));
    expect(codesAt(1)).not.toEqual(codesAt(2));
    dematerialize(made);
  });

  test("are the likeliest in evaluation, and used evenly where each is as often", () => {
    const { made } = quantizer();
    scope(() => {
      made.eval();
      const { codes, perplexity } = made.forward(framesOf(1), undefined);
      const shares = made.weight_proj.forward(framesOf(1)).view([GROUPS, CODES]).argmax(-1);
      const [first = 0, second = 0] = numbers(shares);
      expect(numbers(codes)).toEqual([first * CODES + second]);
      expect(perplexity.item()).toBeCloseTo(GROUPS, 5); // one code of each codebook
    });
    dematerialize(made);
  });
});

describe("masked frames", () => {
  const lengths = [40, 25, 3, 12];
  const [LENGTH, OTHERS] = [40, 6];
  const drawnAt = (draw: number, share = 0.5) => {
    const draws = lengths.map((_, row) => draw * lengths.length + row);
    const spans = { mask_time_prob: share, mask_time_length: 4, num_negatives: OTHERS };
    return scope(() => {
      const { maskTimeIndices, sampledNegativeIndices } = maskFrames(lengths, LENGTH, {
        ...spans,
        seed: 8,
        draws,
      });
      return { masked: numbers(maskTimeIndices), others: numbers(sampledNegativeIndices) };
    });
  };

  test("masked frames stand in spans within a recording, and each is contrasted with others of its own recording, all equally often", () => {
    const reported = new Map<number, number>();
    const rounds = 600;
    const wrong: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const { masked, others } = drawnAt(round);
      const rowOf = (place: number) => Math.floor(place / LENGTH);
      for (const [place, isMasked] of masked.entries()) {
        const own = others.slice(place * OTHERS, (place + 1) * OTHERS);
        const isRight = (other: number) =>
          isMasked === 0
            ? other === 0
            : masked[other] === 1 && rowOf(other) === rowOf(place) && other !== place;
        if (!own.every(isRight)) wrong.push(`round ${round}, frame ${place}: ${own}`);
        if (isMasked === 1 && place % LENGTH >= (lengths[rowOf(place)] ?? 0)) wrong.push(`padding ${place}`);
        if (isMasked === 1 && rowOf(place) === 0)
          for (const other of own) reported.set(other, (reported.get(other) ?? 0) + 1);
      }
      // A recording shorter than a span has none.
      if (masked.slice(2 * LENGTH, 3 * LENGTH).includes(1)) wrong.push(`round ${round}: a short one`);
    }
    expect(wrong).toEqual([]);
    // A place in the middle is masked in four rounds of ten: 5 % is a deviation of its 240, and 0.2 four.
    const inside = Array.from({ length: 20 }, (_, place) => reported.get(place + 10) ?? 0);
    const mean = inside.reduce((sum, count) => sum + count, 0) / inside.length;
    for (const count of inside) expect(Math.abs(count / mean - 1)).toBeLessThan(0.2);
  });

  test("are the same for the same draws, and else not", () => {
    expect(drawnAt(3)).toEqual(drawnAt(3));
    expect(drawnAt(3)).not.toEqual(drawnAt(4));
  });
});

const small = {
  ...config,
  hidden_size: 8,
  num_attention_heads: 2,
  num_hidden_layers: 1,
  intermediate_size: 8,
  num_conv_pos_embedding_groups: 2,
};

describe("a model that is pre-trained", () => {
  test("is wav2vec 2's base model where nothing is said, and has what a model that writes leaves aside", () => {
    const model = new Wav2Vec2ForPreTraining();
    // As transformers counts them.
    expect(model.numParameters).toBe(95_044_608);
    expect(model.configJson).toMatchObject({ architectures: ["Wav2Vec2ForPreTraining"], num_negatives: 100 });
    const names = [...model.namedParameters().keys()].filter((name) => !name.startsWith("wav2vec2."));
    const ignored = new Wav2Vec2ForCTC().stateNaming.ignored;
    for (const name of names)
      expect(
        ignored.some((pattern) => pattern.test(name)),
        name,
      ).toBe(true);
  });

  test("a frame's loss ignores distractors that have the frame's own code", () => {
    const fields = { ...small, num_codevector_groups: 1, num_codevectors_per_group: 1 };
    const model = new Wav2Vec2ForPreTraining({ ...fields, diversity_loss_weight: 0 });
    materialize(model.eval(), { seed: 1 });
    scope(() => {
      const inputValues = tensor(
        Float32Array.from({ length: 99 }, (_, place) => Math.sin(place * place)),
        {
          shape: [1, 99],
        },
      );
      const masked = maskFrames([49], 49, { seed: 1, draws: [0], num_negatives: 5 });
      expect(model.forward({ inputValues, ...masked }).loss?.item()).toBe(0);
    });
    dematerialize(model);
  });

  test("refuses negatives without masked frames, and fields that do not fit", () => {
    const model = new Wav2Vec2ForPreTraining(small);
    materialize(model.eval(), { seed: 1 });
    scope(() => {
      const inputValues = tensor(new Float32Array(50), { shape: [1, 50] });
      const sampledNegativeIndices = tensor(new BigInt64Array(24), { shape: [1, 24, 1] });
      expect(() => model.forward({ inputValues, sampledNegativeIndices })).toThrow(
        /expected maskTimeIndices with sampledNegativeIndices, got none/,
      );
    });
    dematerialize(model);
    for (const fields of [{ codevector_dim: 7 }, { mask_time_prob: 0 }, { add_adapter: true, layerdrop: 0 }])
      expect(() => new Wav2Vec2ForPreTraining(fields)).toThrow(
        expect.objectContaining({ code: "MODEL_CONFIG" }),
      );
  });

  test("draws the same codes on one rank that accumulates and on two, at ZeRO 3, recomputed, split by heads, on two stages", async () => {
    const losses = async (options: RuntimeOptions) => {
      const reported: number[] = [];
      await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
      runtime.on("step.finished", ({ lossNats }) => void reported.push(lossNats));
      const job = new URL("../fixtures/jobs/family.ts", import.meta.url);
      await runtime.run(job, { family: "wav2vec 2 pre-training" });
      return reported;
    };
    const alone = await losses({ ranks: 1, accumulation: 2 });
    expect(alone).toHaveLength(4);
    expect(await losses({ ranks: 2, zero: 3, recompute: true })).toEqual(alone);
    const near = [{ tp: 2, sequenceParallel: true }, { pp: 2 }];
    for (const layout of near) {
      const split = await losses({ ranks: 2, accumulation: 2, ...layout });
      for (const [step, loss] of alone.entries())
        expect(Math.abs((split[step] ?? 0) - loss)).toBeLessThan(1e-4 * loss); // sums by halves
    }
  });
});
