import { afterAll, describe, expect, test } from "vitest";
import { column, row } from "../../../src/compute/nn/index.ts";
import { ops, scope, tensor } from "../../../src/compute/tensor/index.ts";
import type { AffineCase, Given, ProjectionCase, Values } from "../../fixtures/tensor-parallel/layers.ts";
import { wholeOf } from "../../fixtures/tensor-parallel/whole.ts";
import { expectNear, Ranks, relativeError } from "./ranks.ts";

const ranks = new Ranks<typeof import("../../fixtures/tensor-parallel/layers.ts")>(
  new URL("../../fixtures/tensor-parallel/layers.ts", import.meta.url),
);
afterAll(() => ranks.stop());

const TOLERANCE = 1e-5; // float32: another blocking of the products, another order of the sums

/** Joins the ranks' parts; a value that every rank has in full must have the same bits everywhere. */
function joined(held: string, parts: readonly Values[], sequenceDim: number): Float64Array {
  const [first] = parts as [Values];
  if (held === "replicated") {
    for (const { values } of parts) expect(values).toEqual(first.values);
    return first.values;
  }
  const dim = held === "split" ? first.shape.length - 1 : sequenceDim;
  return scope(
    () =>
      ops
        .cat(
          parts.map(({ values, shape }) => tensor(values, { shape })),
          dim,
        )
        .toTypedArray() as Float64Array,
  );
}

function expectGiven(
  all: readonly Given[],
  one: Given | undefined,
  held: { readonly input: string; readonly output: string },
  options: { readonly sequenceDim: number; readonly tolerance: number },
): void {
  if (one === undefined) throw new Error("no answer");
  const { sequenceDim, tolerance } = options;
  const outputs = joined(
    held.output,
    all.map(({ output }) => output),
    sequenceDim,
  );
  expect(relativeError(outputs, one.output.values), "output").toBeLessThan(tolerance);
  const gradients = joined(
    held.input,
    all.map(({ inputGradient }) => inputGradient),
    sequenceDim,
  );
  expect(relativeError(gradients, one.inputGradient.values), "input's gradient").toBeLessThan(tolerance);
  expectNear(wholeOf(all.map((rank) => rank.gradients)), wholeOf([one.gradients]), tolerance);
}

// BMTrain's column_parallel_linear and row_parallel_linear, for every pair of input and output splits, and for more than one
// sample: gathering on the wrong dim scrambles samples (its defects 5 and 6).
const rules = [
  column({ input: "sequence", output: "replicated" }),
  column({ input: "sequence", output: "split" }),
  column({ input: "replicated", output: "split" }),
  column({ input: "replicated", output: "replicated" }),
  column({ input: "sequence", output: "replicated", parts: 3 }),
  ...(["split", "replicated", "sequence"] as const).flatMap((input) =>
    (["replicated", "sequence"] as const).map((output) => row({ input, output })),
  ),
];
const shapes = [
  { shape: [8, 8, 8], sequenceDim: 0 },
  { shape: [3, 4, 8], sequenceDim: 1 },
];
const kinds = ["Linear", "Linear without bias", "Conv1D", "Conv1D with gelu_new"] as const;

describe("a split affine map gives output and gradients of the unsplit one", () => {
  const cases = rules.flatMap((rule) =>
    shapes.map(({ shape, sequenceDim }) => {
      const parts = rule.kind === "column" && rule.parts > 1 ? `, ${rule.parts} parts` : "";
      const title = `by ${rule.kind}s${parts}, from ${rule.input} to ${rule.output}, [${shape}]`;
      return { title, rule, shape, sequenceDim };
    }),
  );

  test.each(cases)("$title", async ({ rule, shape, sequenceDim }) => {
    for (const layer of kinds) {
      const wanted: AffineCase = { layer, rule, shape, sequenceDim };
      const [one] = await ranks.run("affine", 1, wanted);
      for (const size of [2, 4]) {
        const all = await ranks.run("affine", size, wanted);
        const held = { input: rule.input ?? "", output: rule.output ?? "" };
        expectGiven(all, one, held, { sequenceDim, tolerance: TOLERANCE });
      }
    }
  });
});

describe("chunks that overlap communication and product", () => {
  const cases = [column({ input: "sequence" }), row({ output: "sequence" })].flatMap((rule) =>
    [
      { shape: [8, 3, 8], sequenceDim: 0 },
      { shape: [3, 8, 8], sequenceDim: 1 },
      { shape: [3, 4, 8], sequenceDim: 1 }, // does not divide by 4 ranks × 2 chunks: not cut
    ].map((given) => ({
      ...given,
      rule,
      title: `by ${rule.kind}s, [${given.shape}], dim ${given.sequenceDim}`,
    })),
  );

  test.each(cases)("change no output and no gradient: $title", async ({ rule, shape, sequenceDim }) => {
    for (const layer of kinds) {
      for (const [size, chunks] of [
        [2, 2],
        [2, 4],
        [4, 2],
      ] as const) {
        const wanted: AffineCase = { layer, rule, shape, sequenceDim };
        const plain = await ranks.run("affine", size, wanted);
        const chunked = await ranks.run("affine", size, { ...wanted, chunks });
        chunked.forEach((got, rank) => {
          const expected = plain[rank] as Given;
          expect(relativeError(got.output.values, expected.output.values)).toBeLessThan(1e-6); // fewer rows a product
          expect(relativeError(got.inputGradient.values, expected.inputGradient.values)).toBeLessThan(1e-6);
        });
        const gradients = [chunked, plain].map((all) => wholeOf(all.map((rank) => rank.gradients)));
        expectNear(
          gradients[0] as Map<string, Float64Array>,
          gradients[1] as Map<string, Float64Array>,
          1e-6,
        );
      }
    }
  });
});

test.each([1, 2])(
  "positions gathered for a split layer are not kept for backward, in %i chunks",
  async (chunks) => {
    for (const bytes of await ranks.run("keptBytes", 2, { chunks })) expect(bytes).toBeLessThan(2048); // of 65,536
  },
);

describe("BMTrain's parallel_projection: a split vocabulary gives loss, logits and gradients of the unsplit one", () => {
  const tolerances = { float32: TOLERANCE, bfloat16: 2 ** -6, float16: 2 ** -9 }; // a few roundings
  const cases = (["float32", "bfloat16", "float16"] as const).flatMap((dtype) =>
    (["replicated", "sequence"] as const).flatMap((input) => [
      { dtype, input, answer: "loss" as const, weighed: false },
      { dtype, input, answer: "loss" as const, weighed: true },
      { dtype, input, answer: "logits" as const, weighed: false },
    ]),
  );

  test.each(cases)("$dtype, input $input, $answer, classes weighed: $weighed", async (given) => {
    // 110 rows, or 120; 102 words are no multiple of 4: the last rank holds padding.
    const length = given.input === "sequence" ? 24 : 22;
    const wanted: ProjectionCase = { numWords: 102, batch: 5, length, ...given };
    for (const size of [2, 4]) {
      const [one] = await ranks.run("projection", 1, wanted);
      const all = await ranks.run("projection", size, wanted);
      const held = { input: given.input, output: "replicated" };
      expectGiven(all, one, held, { sequenceDim: 1, tolerance: tolerances[given.dtype] });
    }
  });
});

// The cases in which BMTrain was seen to go wrong, with its numbers.
describe("BMTrain's defects stay away", () => {
  test("5: a row's bias sees every rank's positions, where each rank saw 6 or 22 of 28", async () => {
    for (const bias of await ranks.run("rowBias", 2, undefined)) expect([...bias]).toEqual([28]);
  });

  test("6: a table's gradient counts every rank's words", async () => {
    const all = await ranks.run("wordCounts", 2, undefined);
    const gradient = wholeOf(all.map((rank) => rank.gradients)).get("table.weight") as Float64Array;
    expect([0, 1, 2, 3].map((word) => gradient[4 * word])).toEqual([2, 1, 1, 0]);
  });

  test("6: several samples keep apart, also from split inputs to shared positions", async () => {
    const rule = row({ input: "sequence", output: "sequence" });
    const wanted: AffineCase = { layer: "Linear", rule, shape: [2, 4, 8], sequenceDim: 1 };
    const [one] = await ranks.run("affine", 1, wanted);
    const all = await ranks.run("affine", 2, wanted);
    const held = { input: "sequence", output: "sequence" };
    expectGiven(all, one, held, { sequenceDim: 1, tolerance: TOLERANCE });
  });

  test("7 and 20: a split vocabulary's gradient is not 1/2 of the true one, and takes float32 and class weights", async () => {
    const wanted = {
      numWords: 100,
      batch: 2,
      length: 8,
      dtype: "float32",
      input: "replicated",
      answer: "loss",
    } as const;
    const [one] = await ranks.run("projection", 1, { ...wanted, weighed: true });
    const all = await ranks.run("projection", 2, { ...wanted, weighed: true });
    const held = { input: "replicated", output: "replicated" };
    expectGiven(all, one, held, { sequenceDim: 1, tolerance: TOLERANCE });
  });
});

describe("a split embedding", () => {
  test.each([false, true])("gets the gradient of every rank's tokens, sequence split: %s", async (split) => {
    const [one] = await ranks.run("lookup", 1, { split });
    const all = await ranks.run("lookup", 2, { split });
    if (one === undefined) throw new Error("no answer");
    const held = split ? "sequence" : "replicated";
    expect(
      joined(
        held,
        all.map(({ output }) => output),
        1,
      ),
    ).toEqual(one.output.values); // x + 0 is x: bit for bit
    const counts = [1, 3, 0, 2, 0, 0, 0, 0, 0, 2];
    const gradient = wholeOf(all.map((rank) => rank.gradients)).get("table.weight");
    expect(gradient).toEqual(Float64Array.from(counts.flatMap((count) => [count, count, count, count])));
  });
});
