import { describe, expect, test, vi } from "vitest";
import {
  type Affine,
  activations,
  Conv1D,
  crossEntropy,
  dematerialize,
  Linear,
  type Module,
  materialize,
  normal,
  VocabularyHead,
  wrapForward,
} from "../../src/compute/nn/index.ts";
import { empty, grad, metered, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

const random = (shape: number[], stream: number) =>
  ops.troupe.philoxNormal_(empty(shape), 0, 1, 4, stream, 0);
const largestDifference = (a: Tensor, b: Tensor) => a.sub(b).abs().max().item();

function computing<M extends Module>(module: M, body: (module: M) => void): void {
  materialize(module, { seed: 2 });
  scope(() => body(module));
  dematerialize(module);
}

const names = ["gelu_new", "relu", "silu"] as const;

describe("an affine map", () => {
  test.each(names)("applies its activation %s behind the bias", (activation) => {
    const pairs: [Affine, Affine][] = [
      [new Linear(6, 5, { activation }), new Linear(6, 5)],
      [new Conv1D(6, 5, { activation }), new Conv1D(6, 5)],
      [new Linear(6, 5, { activation, bias: false }), new Linear(6, 5, { bias: false })],
    ];
    for (const [active, plain] of pairs) {
      computing(active, () =>
        computing(plain, () => {
          const x = random([2, 3, 6], 0);
          const expected = activations[activation](plain.forward(x));
          expect(largestDifference(active.forward(x), expected)).toBeLessThan(1e-6); // fused: one rounding less
        }),
      );
    }
  });

  test.each([true, false])("is one product with others of its size, with biases: %s", (bias) => {
    const maps = [1, 2, 3].map(() => new Linear(6, 5, { bias }));
    const nest = (index: number, body: () => void): void => {
      const map = maps[index];
      if (map === undefined) body();
      else computing(map, () => nest(index + 1, body));
    };
    nest(0, () => {
      for (const map of maps) map.weight.tensor.requiresGrad_();
      const x = random([2, 3, 6], 0).requiresGrad_();
      const leaves = [x, ...maps.map((map) => map.weight.tensor)];
      const gradients = (outputs: Tensor[]) =>
        grad(
          outputs,
          leaves,
          outputs.map((output, index) => output.detach().add(index)),
        );
      const [apart, jointly] = [maps.map((map) => map.forward(x)), Linear.jointly(maps, x)];
      for (const [index, output] of jointly.entries())
        expect(largestDifference(output, apart[index] as Tensor)).toBeLessThan(1e-6);
      const expected = gradients(apart);
      for (const [index, gradient] of gradients(jointly).entries())
        expect(largestDifference(gradient as Tensor, expected[index] as Tensor)).toBeLessThan(1e-5);
      expect(Linear.each(maps, x)[1]?.shape).toEqual([2, 3, 5]);
    });
  });

  test("refuses an activation that there is not, with the nearest name", () => {
    const activation = "geluu" as "gelu";
    expect(() => new Linear(6, 5, { activation })).toThrow(
      /^\[Linear\] expected activation .* got "?geluu"? \(did you mean gelu\?\)$/,
    );
    expect(() => new Linear(6, 5, { activation: "constructor" as "gelu" })).toThrow(
      /^\[Linear\] expected activation/,
    );
  });

  test("is joined with others on a GPU, unless one of them is wrapped", () => {
    const maps = [new Linear(6, 5), new Linear(6, 5)];
    const jointly = vi.spyOn(Linear, "jointly").mockReturnValue([]);
    const joinedOnGpu = () => {
      jointly.mockClear();
      metered("cuda", () => scope(() => Linear.each(maps, ops.troupe.placeholder([2, 6], "float32"))));
      return jointly.mock.calls.length === 1;
    };
    computing(maps[0] as Linear, () =>
      computing(maps[1] as Linear, () => {
        expect(joinedOnGpu()).toBe(true);
        for (const map of maps) wrapForward(map, (_, [x]) => x);
        expect(joinedOnGpu()).toBe(false);
      }),
    );
    jointly.mockRestore();
  });

  test("is its product finished", () => {
    for (const affine of [new Linear(6, 5), new Conv1D(6, 5), new Conv1D(6, 5, { activation: "gelu_new" })]) {
      computing(affine, () => {
        const x = random([2, 3, 6], 0);
        const stepwise = affine.finish(affine.product(x));
        expect(largestDifference(stepwise, affine.forward(x))).toBeLessThan(1e-6); // the bias is added last, not first
        expect(affine.weight.shape[affine.outputDim]).toBe(5);
      });
    }
  });
});

describe("a vocabulary head", () => {
  const targets = () => tensor([[3, -100, 0]], { dtype: "int64" });

  test("gives the cross entropy of the logits that it does not make", () => {
    computing(new VocabularyHead(6, 7, normal(0, 1)), (head) => {
      const hidden = random([1, 3, 6], 1);
      const loss = head.forward(hidden, { targets: targets() });
      expect(loss.item()).toBeCloseTo(crossEntropy(head.forward(hidden), targets()).item(), 5);
    });
  });

  test("gives logits of the last positions only", () => {
    computing(new VocabularyHead(6, 7, normal(0, 1)), (head) => {
      const hidden = random([2, 3, 6], 1);
      const all = head.forward(hidden);
      expect(all.shape).toEqual([2, 3, 7]);
      const last = head.forward(hidden, { numPositions: 1 });
      expect(largestDifference(last, all.narrow(1, 2, 1))).toBeLessThan(1e-6); // another blocking of the product
    });
  });
});
