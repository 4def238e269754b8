import { describe, expect, test } from "vitest";
import { explicitAttention } from "../../src/compute/nn/attention/attention.ts";
import {
  type AttentionOptions,
  attention,
  bindRandomness,
  Dropout,
  joinHeads,
  paddingMask,
  Randomness,
  splitHeads,
} from "../../src/compute/nn/index.ts";
import { empty, grad, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";

type Heads = [q: Tensor, k: Tensor, v: Tensor];

function draw(shape: number[], stream: number): Tensor {
  return ops.troupe.philoxNormal_(empty(shape), 0, 1, 1, stream, 0);
}

function heads(numHeads = 3, numGroups = 3, numQueries = 17, numKeys = 17): Heads {
  return [
    draw([2, numHeads, numQueries, 8], 0),
    draw([2, numGroups, numKeys, 8], 1),
    draw([2, numGroups, numKeys, 8], 2),
  ];
}

const values = (x: Tensor) => Array.from(x.to("float64").toTypedArray() as Float64Array);

/** Every weight by a loop over numbers, with nothing of the library's tensors: what attention is. */
function byLoops([q, k, v]: Heads, options: Omit<AttentionOptions, "dropout">): number[] {
  const {
    causal = false,
    window = Number.POSITIVE_INFINITY,
    scale = 1 / Math.sqrt(q.shape[3] ?? 1),
  } = options;
  const [B = 0, H = 0, T = 0, K = 0] = q.shape;
  const [, G = 0, S = 0] = k.shape;
  const whole = (x: Tensor | undefined) => x && values(x.expand([B, H, T, S]).contiguous());
  const [qs, ks, vs, mask, bias] = [
    values(q),
    values(k),
    values(v),
    whole(options.mask),
    whole(options.bias),
  ];
  const out: number[] = [];
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      const group = b * G + Math.floor((h * G) / H);
      for (let t = 0; t < T; t++) {
        const row = (b * H + h) * T + t;
        const weights = Array.from({ length: S }, (_, s): number => {
          const place = t + S - T;
          const isSeen = (!causal || s <= place) && s > place - window && (mask?.[row * S + s] ?? 1) !== 0;
          if (!isSeen) return 0;
          let dot = 0;
          for (let i = 0; i < K; i++) dot += (qs[row * K + i] ?? 0) * (ks[(group * S + s) * K + i] ?? 0);
          return Math.exp(dot * scale + (bias?.[row * S + s] ?? 0));
        });
        if (Math.max(...weights) === 0) weights.fill(1);
        const total = weights.reduce((a, w) => a + w, 0);
        for (let i = 0; i < K; i++)
          out.push(weights.reduce((a, w, s) => a + (w / total) * (vs[(group * S + s) * K + i] ?? 0), 0));
      }
    }
  }
  return out;
}

function expectClose(actual: Tensor, expected: readonly number[], digits: number): void {
  const got = values(actual);
  expect(got.length).toBe(expected.length);
  got.forEach((value, index) => void expect(value).toBeCloseTo(expected[index] ?? Number.NaN, digits));
}

const padded = () =>
  paddingMask(
    tensor(
      [
        [...Array(13).fill(1), 0, 0, 0, 0],
        [0, 0, ...Array(15).fill(1)],
      ],
      { dtype: "int64" },
    ),
  );

const cases: Record<string, () => { given: Heads; options: Omit<AttentionOptions, "dropout"> }> = {
  "with every key seen": () => ({ given: heads(), options: {} }),
  "with causal queries and a scale": () => ({ given: heads(), options: { causal: true, scale: 0.3 } }),
  "with more keys than queries, causal": () => ({ given: heads(3, 3, 5, 17), options: { causal: true } }),
  "with fewer keys than queries": () => ({ given: heads(3, 3, 17, 5), options: {} }),
  "with two heads to a group": () => ({ given: heads(6, 3), options: { causal: true } }),
  "with one group": () => ({ given: heads(6, 1), options: {} }),
  "with a window smaller than the row": () => ({ given: heads(), options: { causal: true, window: 5 } }),
  "with a window of one": () => ({ given: heads(), options: { causal: true, window: 1 } }),
  "with rows padded right and left, causal: what sees nothing gets the mean of all": () => ({
    given: heads(6, 2),
    options: { causal: true, mask: padded() },
  }),
  "with a mask of every score": () => ({
    given: heads(),
    options: { mask: draw([2, 3, 17, 17], 5).gt(0.2) },
  }),
  "with a bias of every head": () => ({ given: heads(), options: { bias: draw([1, 3, 17, 17], 6) } }),
  "with a bias, a mask and a window at once": () => ({
    given: heads(4, 2),
    options: { bias: draw([4, 17, 17], 7), mask: padded(), window: 9, causal: true, scale: 1 },
  }),
};

describe("attention", () => {
  test.each(Object.keys(cases))("equals its definition %s, in each float dtype", (name) => {
    scope(() => {
      const { given, options } = (cases[name] as (typeof cases)[string])();
      const expected = byLoops(given, options);
      expectClose(attention(...given, options), expected, 5);
      expectClose(
        attention(...(given.map((x) => x.to("float64")) as Heads), {
          ...options,
          bias: options.bias?.to("float64"),
        }),
        expected,
        5,
      );
      // bfloat16 keeps 8 bits of inputs of size 1 and of the result.
      const narrow = given.map((x) => x.to("bfloat16")) as Heads;
      expectClose(
        attention(...narrow, { ...options, bias: options.bias?.to("bfloat16") }),
        byLoops(narrow, options),
        1,
      );
    });
  });

  test.each(Object.keys(cases))("has the gradients of its definition in float64 %s", (name) => {
    scope(() => {
      const { given, options } = (cases[name] as (typeof cases)[string])();
      const gradients = (dtype: "float32" | "float64") => {
        const inputs = [...given, ...(options.bias ? [options.bias] : [])].map((x) =>
          x.detach().to(dtype).requiresGrad_(),
        );
        const [q, k, v, bias] = inputs as [Tensor, Tensor, Tensor, Tensor | undefined];
        const run = dtype === "float64" ? explicitAttention : attention;
        const out = run(q, k, v, { ...options, bias });
        return grad([out], inputs, [draw([...out.shape], 9).to(dtype)]).map((x) => values(x as Tensor));
      };
      const [got, wanted] = [gradients("float32"), gradients("float64")];
      got.forEach((gradient, input) => {
        const expected = wanted[input] ?? [];
        gradient.forEach((value, index) => void expect(value).toBeCloseTo(expected[index] ?? Number.NaN, 4));
      });
    });
  });

  test("lets no position see a later one", () => {
    scope(() => {
      const [q, k, v] = heads();
      const before = values(attention(q, k, v, { causal: true }).narrow(2, 0, 16));
      v.narrow(2, 16, 1).fill_(100);
      k.narrow(2, 16, 1).fill_(100);
      expect(values(attention(q, k, v, { causal: true }).narrow(2, 0, 16))).toEqual(before);
    });
  });

  test("drops attention weights while training, the same in each pass of one step", () => {
    scope(() => {
      const [q, k, v] = heads(6, 3);
      const dropout = new Dropout(0.5);
      const randomness = new Randomness(2);
      bindRandomness(dropout, randomness);
      const options = { causal: true, mask: padded(), dropout };
      const dropped = values(attention(q, k, v, options));
      randomness.restart();
      expect(values(attention(q, k, v, options))).toEqual(dropped);
      randomness.restart();
      expectClose(explicitAttention(q, k, v, options), dropped, 5);
      expect(dropped).not.toEqual(values(attention(q, k, v, { ...options, dropout: undefined })));
      expect(values(attention(q, k, v, { ...options, dropout: dropout.eval() }))).toEqual(
        values(attention(q, k, v, { ...options, dropout: undefined })),
      );
    });
  });

  test("has a shape where its inputs have no memory", () => {
    scope(() => {
      const q = ops.troupe.placeholder([2, 4, 5, 8], "float32");
      const k = ops.troupe.placeholder([2, 2, 7, 8], "float32");
      const out = attention(q, k, k, { mask: tensor([1, 1, 1, 1, 1, 1, 0], { dtype: "bool" }) });
      expect([out.device, out.shape]).toEqual(["meta", [2, 4, 5, 8]]);
    });
  });

  test("splitting heads and joining them is the identity", () => {
    scope(() => {
      const x = draw([2, 5, 12], 4);
      expect(splitHeads(x, 3).shape).toEqual([2, 4, 5, 3]);
      expect(values(joinHeads(splitHeads(x, 3)))).toEqual(values(x));
    });
  });

  test("refuses heads that are no multiple of the groups, masks that do not fit and windows of none", () => {
    scope(() => {
      const [q, k, v] = heads(4, 3);
      expect(refusal(() => attention(q, k, v))).toMatchObject({ code: "MODULE_ARGUMENT" });
      const same = heads();
      const mask = draw([16], 1).gt(0);
      expect(refusal(() => attention(...same, { mask }))?.message).toContain("broadcasts to [2,3,17,17]");
      expect(refusal(() => attention(...same, { mask: draw([17], 1) }))?.message).toContain("a mask of bool");
      expect(refusal(() => attention(...same, { window: 0 }))?.message).toContain("a window of at least 1");
    });
  });
});
