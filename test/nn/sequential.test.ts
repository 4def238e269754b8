import { describe, expect, it } from "vitest";
import {
  arange,
  Linear,
  ModuleList,
  ones,
  Parameter,
  Sequential,
  scope,
  zeros,
} from "../../src/entries/index.ts";
import { activations, dematerialize, init, materialize } from "../../src/entries/nn.ts";
import { RandomGenerator, rand, randint, randn, zerosLike } from "../../src/entries/tensor.ts";

const numbers = (values: ArrayLike<number | bigint>) => Array.from(values, Number);

describe("lists of modules", () => {
  it("are read by index, counted, gone through, and named as torch names them", () => {
    const layers = new ModuleList([new Linear(2, 2), new Linear(2, 3)]);
    expect(layers[1]).toBe(layers.at(-1));
    expect([layers.length, layers[2], [...layers].length]).toEqual([2, undefined, 2]);
    expect([...layers.namedParameters().keys()]).toEqual(["0.weight", "0.bias", "1.weight", "1.bias"]);
    const chain = new Sequential(new Linear(4, 8), activations.relu, layers[0] as Linear);
    expect([...chain.namedParameters().keys()]).toEqual(["0.weight", "0.bias", "2.weight", "2.bias"]);
    expect([chain[1], chain.length, chain.at(-1), [...chain].length]).toEqual([
      activations.relu,
      3,
      layers[0],
      3,
    ]);
  });

  it("in a Sequential hand on what they compute", () => {
    const [first, last] = [new Linear(3, 3), new Linear(3, 2)];
    const chain = new Sequential(first, activations.tanh, last);
    materialize(chain, { seed: 3 });
    scope(() => {
      const x = randn([4, 3], new RandomGenerator(1));
      expect(chain.forward(x).toTypedArray()).toEqual(last.forward(first.forward(x).tanh()).toTypedArray());
    });
    dematerialize(chain);
  });
});

describe("random tensors", () => {
  it("follow from the seed and the number of draws, and are spread as they say", () => {
    scope(() => {
      const draw = (seed: number) => {
        const generator = new RandomGenerator(seed);
        const normal = randn([100, 100], generator);
        return { normal, even: rand(10_000, generator), dice: randint(-2, 4, [10_000], generator) };
      };
      const [one, same, other] = [draw(5), draw(5), draw(6)];
      for (const kind of ["normal", "even", "dice"] as const) {
        expect(one[kind].toTypedArray()).toEqual(same[kind].toTypedArray());
        expect(one[kind].toTypedArray()).not.toEqual(other[kind].toTypedArray());
      }
      // Of 10,000 draws: five standard errors.
      expect(Math.abs(one.normal.mean().item())).toBeLessThan(0.05);
      expect(one.normal.square().mean().item()).toBeCloseTo(1, 1);
      expect(Math.abs(one.even.mean().item() - 0.5)).toBeLessThan(0.015);
      const dice = numbers(one.dice.toTypedArray());
      expect(one.dice.dtype).toBe("int64");
      for (let face = -2; face < 4; face++)
        expect(Math.abs(dice.filter((each) => each === face).length - 10_000 / 6)).toBeLessThan(190);
      expect(() => randint(3, 3, [1], new RandomGenerator(1))).toThrow(
        "[randint] expected integers low < high",
      );
      expect(numbers(zerosLike(arange(3)).toTypedArray())).toEqual([0, 0, 0]);
    });
  });
});

describe("the names of initializers and of tensor functions", () => {
  it("mean the initializer where one is meant", () => {
    expect(new Parameter([2], ones).init).toEqual(init.constant(1));
    expect(new Parameter([2], zeros).init).toEqual(init.constant(0));
    expect(() => new Parameter([2], (() => 1) as never)).toThrow(
      "[Parameter] expected an initializer, got the function",
    );
  });
});
