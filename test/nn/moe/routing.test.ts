import { describe, expect, test } from "vitest";
import {
  type Choice,
  combine,
  dispatch,
  type GateOptions,
  type Routing,
  route,
} from "../../../src/compute/nn/index.ts";
import { empty, ops, scope, type Tensor, tensor, zeros } from "../../../src/compute/tensor/index.ts";
import { expectGradients } from "../finite-differences.ts";

const values = (x: Tensor) => Array.from(x.to("float64").toTypedArray() as Float64Array);
const random = (shape: number[], stream: number) =>
  ops.troupe.philoxNormal_(empty(shape), 0, 1, 3, stream, 0);

/** Six tokens, three experts; first choices 0 0 0 1 0 2, second ones 1 2 1 2 2 0. */
const logits = [
  [2, 1, 0],
  [3, 0, 1],
  [1, 0.5, 0],
  [0, 2, 1],
  [2, 0, 1.5],
  [1, 0, 3],
];
const options = (given: Partial<GateOptions>): GateOptions => ({
  k: 1,
  capacityFactor: 1,
  minCapacity: 1,
  dropTokens: true,
  ...given,
});

/** Expert and position of each kept token, null of the others. */
function standing({ choices, capacity }: Routing, index: number): ([number, number] | null)[] {
  const { places, kept } = choices[index] as Choice;
  const isKept = values(kept);
  return values(places).map((place, token) =>
    isKept[token] === 1 ? [Math.floor(place / capacity), place % capacity] : null,
  );
}

function weightsOf(routing: Routing): number[][] {
  return routing.choices.map(({ weights }) => values(weights).map((weight) => Number(weight.toFixed(5))));
}

describe("a top-1 gate", () => {
  test("keeps the first tokens of each expert up to its capacity, with the gate's value as weight", () => {
    scope(() => {
      const routing = route(tensor(logits), options({}));
      expect(routing.capacity).toBe(2);
      expect(standing(routing, 0)).toEqual([[0, 0], [0, 1], null, [1, 0], null, [2, 0]]);
      expect(weightsOf(routing)).toEqual([[0.66524, 0.84379, 0, 0.66524, 0, 0.84379]]);
      expect(values(routing.counts)).toEqual([4, 1, 1]);
      expect(routing.auxiliaryLoss.item()).toBeCloseTo(1.1984597, 6); // from the choices before any was dropped
    });
  });

  test("keeps a random sample where keys are given: the tokens with the largest", () => {
    scope(() => {
      const ofFirst = [0, 0.2, 0.9, 0.5, 0.4, 0.1];
      const keys = tensor(ofFirst.map((key) => [key, key, key]));
      const routing = route(tensor(logits), options({}), { keys, gumbel: undefined });
      expect(standing(routing, 0)).toEqual([null, null, [0, 0], [1, 0], [0, 1], [2, 0]]);
    });
  });

  test("keeps a token whose key is 0 where there is room for it", () => {
    scope(() => {
      const routing = route(tensor(logits), options({ capacityFactor: 2 }), {
        keys: zeros([6, 3]),
        gumbel: undefined,
      });
      expect(standing(routing, 0).filter((place) => place === null)).toEqual([]);
    });
  });

  test("chooses by noisy logits and weighs by the gates", () => {
    scope(() => {
      const gumbel = tensor(logits.map(() => [0, 10, 0]));
      const routing = route(tensor(logits), options({ capacityFactor: 3 }), { gumbel, keys: undefined });
      expect(standing(routing, 0).map((place) => place?.[0])).toEqual([1, 1, 1, 1, 1, 1]);
      expect(weightsOf(routing)[0]?.[0]).toBeCloseTo(0.24473, 5);
    });
  });

  test("never gives an expert more than its capacity, and loses exactly what is beyond", () => {
    scope(() => {
      const skewed = zeros([64, 4]).add(tensor([5, 0, 0, 0])); // all to expert 0
      const routing = route(skewed, options({ capacityFactor: 1.25 }));
      expect(routing.capacity).toBe(20);
      expect(values((routing.choices[0] as Choice).kept).filter((kept) => kept === 1).length).toBe(20);
    });
  });

  test("takes at least the least capacity", () => {
    scope(() => void expect(route(tensor(logits), options({ minCapacity: 5 })).capacity).toBe(5));
  });

  test("drops nothing where it must not: the capacity is that of the busiest expert, as agreed", () => {
    scope(() => {
      const routing = route(tensor(logits), options({ dropTokens: false }));
      expect(routing.capacity).toBe(4);
      expect(standing(routing, 0)).not.toContain(null);
      expect(
        route(tensor(logits), options({ dropTokens: false }), undefined, (own) => own + 3).capacity,
      ).toBe(7);
    });
  });

  test("has an auxiliary loss of 1 for a router that knows nothing", () => {
    scope(() => void expect(route(zeros([32, 8]), options({})).auxiliaryLoss.item()).toBeCloseTo(1, 6));
  });
});

describe("a top-2 gate", () => {
  test("queues second choices behind all first ones and shares each token's weight", () => {
    scope(() => {
      const routing = route(tensor(logits), options({ k: 2 }));
      expect(routing.capacity).toBe(4);
      expect(standing(routing, 0)).toEqual([
        [0, 0],
        [0, 1],
        [0, 2],
        [1, 0],
        [0, 3],
        [2, 0],
      ]);
      expect(standing(routing, 1)).toEqual([[1, 1], [2, 1], [1, 2], [2, 2], [2, 3], null]);
      expect(weightsOf(routing)).toEqual([
        [0.73106, 0.8808, 0.62246, 0.73106, 0.62246, 1],
        [0.26894, 0.1192, 0.37754, 0.26894, 0.37754, 0],
      ]);
    });
  });

  test("drops both choices of a token that finds no room", () => {
    scope(() => {
      const routing = route(tensor(logits), options({ k: 2, capacityFactor: 0.75 }));
      expect(routing.capacity).toBe(3);
      expect(standing(routing, 0)[4]).toBeNull();
      expect(standing(routing, 1)[4]).toBeNull();
      expect(weightsOf(routing).map((weights) => weights[4])).toEqual([0, 0]);
    });
  });

  test("draws the second choice among the others only", () => {
    scope(() => {
      const gumbel = tensor(logits.map(() => [50, 0, 20]));
      const routing = route(tensor(logits), options({ k: 2, capacityFactor: 3 }), {
        gumbel,
        keys: undefined,
      });
      expect(standing(routing, 1).map((place) => place?.[0])).toEqual([2, 2, 2, 0, 2, 0]);
    });
  });

  test("counts both choices where nothing may be dropped", () => {
    scope(() => {
      const routing = route(tensor(logits), options({ k: 2, dropTokens: false }));
      expect(routing.capacity).toBe(5); // of expert 0: 4 first and 1 second
      for (const index of [0, 1]) expect(standing(routing, index)).not.toContain(null);
    });
  });
});

describe("dispatch and combine", () => {
  test("bring each kept token to its expert and back, weighted; a dropped one comes back as 0", () => {
    scope(() => {
      const x = random([6, 4], 0);
      const routing = route(tensor(logits), options({}));
      const places = dispatch(x, routing);
      expect(places.shape).toEqual([3, 2, 4]);
      expect(values(places.select(0, 0).select(0, 1))).toEqual(values(x.select(0, 1)));
      expect(values(places.select(0, 1).select(0, 1))).toEqual([0, 0, 0, 0]); // expert 1 has one token
      const weights = (routing.choices[0] as Choice).weights;
      expect(values(combine(places, routing).add(0))).toEqual(values(x.mul(weights.unsqueeze(1)).add(0)));
    });
  });

  test.each([1, 2] as const)("have the gradients of central differences, k = %i", (k) => {
    scope(() => {
      const gate = tensor(logits, { dtype: "float64" }).requiresGrad_();
      const x = random([6, 4], 1).to("float64").requiresGrad_();
      const scales = random([3, 1, 4], 2).to("float64");
      const weighing = random([6, 4], 3).to("float64");
      const loss = () => {
        const routing = route(gate, options({ k }));
        const answers = dispatch(x, routing).mul(scales);
        return combine(answers, routing).mul(weighing).sum().add(routing.auxiliaryLoss);
      };
      expectGradients(loss, { gate, x }, { step: 1e-5, tolerance: 1e-6 });
    });
  });
});

test("a gate refuses more choices than experts", () => {
  scope(
    () => void expect(() => route(zeros([4, 1]), options({ k: 2 }))).toThrow("expected 2 experts or more"),
  );
});
