import { describe, expect, test } from "vitest";
import {
  constant,
  defineInitializer,
  initializeSlice,
  loadInitializers,
  Parameter,
} from "../../src/compute/nn/index.ts";
import { empty, ones, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

const asked: unknown[] = [];
const counted = defineInitializer(import.meta.url, "counted", (range, { step }: { step: number }) => {
  asked.push(range);
  return Array.from({ length: range.end - range.begin }, (_, index) => step * (range.begin + index));
});
const asTensor = defineInitializer(import.meta.url, "as tensor", ({ begin, end }) =>
  tensor(Array.from({ length: end - begin }, (_, index) => begin + index)),
);
const short = defineInitializer(import.meta.url, "short", () => [1]);

const filled = (parameter: Parameter, begin = 0, numel = parameter.numel) =>
  scope(() => {
    const slice = empty([numel]);
    const { shape, split, init } = parameter;
    initializeSlice(slice, { name: "w", shape, init, ...(split && { split }) }, 5, begin);
    return Array.from((slice as Tensor).toTypedArray(), Number);
  });

describe("an initializer of one's own", () => {
  test("computes a range of the complete parameter, however it is sliced or split", () => {
    const whole = new Parameter([2, 4], counted({ step: 3 }));
    expect(filled(whole, 2, 3)).toEqual([6, 9, 12]);
    expect(asked).toEqual([{ seed: 5, name: "w", shape: [2, 4], begin: 2, end: 5 }]);
    const right = new Parameter([2, 4], counted({ step: 1 }));
    right.cut({ dim: 1, index: 1, count: 2 });
    expect(filled(right)).toEqual([2, 3, 6, 7]);
    expect(filled(new Parameter([3], asTensor(undefined)))).toEqual([0, 1, 2]);
  });

  test("is not to be left out", () => {
    expect(() => new Parameter([2], undefined as never)).toThrow(
      "[Parameter] expected an initializer, got undefined",
    );
  });

  test("travels as plain data", async () => {
    const init = structuredClone(counted({ step: 2 }));
    await loadInitializers([init]);
    expect(filled(new Parameter([3], init))).toEqual([0, 2, 4]);
  });

  test("is refused where its module does not define it, or it gives too little", async () => {
    const { href } = new URL("../fixtures/jobs/own.ts", import.meta.url);
    const foreign = { ...counted({ step: 1 }), module: href };
    await expect(loadInitializers([foreign])).rejects.toMatchObject({ code: "DEFINITION" });
    await expect(loadInitializers([{ ...foreign, module: "file:///nowhere.ts" }])).rejects.toThrow(
      /\[initializer counted\] expected a module that can be imported, got file:\/\/\/nowhere\.ts/,
    );
    expect(() => defineInitializer("own.ts", "bare", () => [])).toThrow(/expected the import\.meta\.url/);
    expect(() => filled(new Parameter([2], short(undefined)))).toThrow(
      /\[w\] expected the initializer short to return 2 numbers for elements 0 to 1, got 1/,
    );
  });

  test("is meant by the tensor function of its name too", () => {
    expect(filled(new Parameter([2], ones))).toEqual([1, 1]);
    expect(filled(new Parameter([2], constant(1)))).toEqual([1, 1]);
  });
});
