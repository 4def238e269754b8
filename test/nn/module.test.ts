import { afterEach, describe, expect, test } from "vitest";
import {
  Dropout,
  dematerialize,
  evaluating,
  Linear,
  Module,
  ModuleList,
  materialize,
  Parameter,
  wrapForward,
  zeros,
} from "../../src/compute/nn/index.ts";
import { liveTensors, noGrad, ones, scope, type Tensor } from "../../src/compute/tensor/index.ts";

class Layer extends Module {
  readonly up = new Linear(3, 5);
  readonly down = new Linear(5, 3, { bias: false });

  override forward(x: Tensor): Tensor {
    return x.add(this.down.forward(this.up.forward(x).relu()));
  }
}

class Network extends Module {
  readonly scale = new Parameter([3], zeros);
  readonly layers = new ModuleList([new Layer(), new Layer()]);
  readonly drop = new Dropout(0.5);
  readonly head = new Linear(3, 3);
  readonly tied = new Linear(3, 3, { bias: false });
  readonly note = "not a member";

  constructor() {
    super();
    this.tied.weight = this.head.weight;
  }

  override forward(x: Tensor): Tensor {
    let out = x.mul(this.scale.tensor);
    for (const layer of this.layers) out = layer.forward(out);
    return this.tied.forward(this.head.forward(out));
  }
}

describe("a module", () => {
  const network = new Network();
  afterEach(() => dematerialize(network));

  test("names its parameters by path, in order of declaration, own ones before those below, tied ones once", () => {
    expect([...network.namedParameters().keys()]).toEqual([
      "scale",
      "layers.0.up.weight",
      "layers.0.up.bias",
      "layers.0.down.weight",
      "layers.1.up.weight",
      "layers.1.up.bias",
      "layers.1.down.weight",
      "head.weight",
      "head.bias",
    ]);
    expect([...network.layers.at(1)!.namedParameters("here").keys()][0]).toBe("here.up.weight");
    expect(network.numParameters).toBe(3 + 2 * (15 + 5 + 15) + 9 + 3);
    expect(network.parameters()).toHaveLength(9);
  });

  test("names the modules below it, parents first, itself by the prefix", () => {
    expect([...network.namedModules().keys()].slice(0, 5)).toEqual([
      "",
      "layers",
      "layers.0",
      "layers.0.up",
      "layers.0.down",
    ]);
    expect(network.children).toEqual([network.layers, network.drop, network.head, network.tied]);
  });

  test.each([
    ["an array", () => [new Layer()]],
    ["an object", () => ({ up: new Layer() })],
    ["a Map", () => new Map([["up", new Layer()]])],
    ["a Set", () => new Set([new Layer()])],
  ])("refuses modules in %s, which discovery would miss", (container, contain) => {
    class Hidden extends Module {
      readonly layers = contain();
      override forward(): void {}
    }
    expect(() => new Hidden().namedParameters()).toThrow(`got ${container} of them as layers`);
  });

  test("refuses a module without forward, and names the method that was meant", () => {
    class Misspelled {
      forwrad(): void {}
    }
    Object.setPrototypeOf(Misspelled.prototype, Module.prototype);
    Object.setPrototypeOf(Misspelled, Module);
    expect(() => Reflect.construct(Module, [], Misspelled)).toThrow(
      "[Misspelled] expected a method forward(…), got one named forwrad (rename forwrad to forward)",
    );
  });

  test("refuses a list item that is no module, and sizes that are no numbers, as they were given", () => {
    expect(() => new ModuleList([new Layer(), 3 as never])).toThrow("expected modules, got 3 as item 1");
    expect(() => new Linear("16" as never, 4)).toThrow('got [4,"16"]');
  });

  test("switches all below it between training and evaluation, and back to the mode each one had", () => {
    network.drop.eval();
    evaluating(network, () => expect(network.layers.at(0)!.up.training).toBe(false));
    expect(network.training).toBe(true);
    expect(network.drop.training).toBe(false);
    network.train();
    expect(network.drop.training).toBe(true);
  });

  test("releases all that forward makes but what it returns", () => {
    materialize(network, { seed: 1 });
    scope(() => {
      const input = ones([2, 3]);
      const before = liveTensors();
      noGrad(() => network.forward(input));
      expect(liveTensors() - before).toBe(1);
    });
  });

  test("computes through a forward wrapped from outside, and as before when that is taken back", () => {
    materialize(network, { seed: 1 });
    scope(() => {
      const input = ones([2, 3]);
      const plain = network.forward(input).toTypedArray();
      const calls: string[] = [];
      const undo = [...network.layers].map((layer, index) =>
        wrapForward(layer, (forward, inputs) => {
          calls.push(`enter ${index}`);
          const out = forward(...inputs);
          calls.push(`leave ${index}`);
          return out;
        }),
      );
      expect(network.forward(input).toTypedArray()).toEqual(plain);
      expect(calls).toEqual(["enter 0", "leave 0", "enter 1", "leave 1"]);
      for (const take of undo) take();
      network.forward(input);
      expect(calls).toHaveLength(4);
      expect([...network.namedParameters().keys()]).toHaveLength(9);
    });
  });

  test("refuses to call a list", () => {
    expect(() => network.layers.forward()).toThrow(expect.objectContaining({ code: "MODULE_LAYOUT" }));
  });
});

describe("a module that is called with nothing", () => {
  test("of ours says which input is missing; one of one's own throws what it throws", () => {
    class Own extends Module {
      override forward(x: Tensor): Tensor {
        return x.add(x.shape[0] ?? 0);
      }
    }
    const nothing = undefined as never;
    expect(() => new Dropout(0.5).forward(nothing)).toThrow(
      "[Dropout] expected a value as input 1 of forward, got undefined (Cannot read properties of undefined (reading 'shape'))",
    );
    expect(() => new Own().forward(nothing)).toThrow(
      new TypeError("Cannot read properties of undefined (reading 'add')"),
    );
  });
});

describe("a parameter", () => {
  test("has no memory until some is bound, and none again after", () => {
    const parameter = new Parameter([2, 3], zeros);
    expect(parameter).toMatchObject({ bound: false, numel: 6, dtype: "float32" });
    expect(() => parameter.tensor).toThrow(expect.objectContaining({ code: "PARAMETER_UNBOUND" }));
    scope(() => {
      const memory = ones([2, 3]);
      parameter.bind(memory);
      expect(parameter.tensor).toBe(memory);
      expect(parameter.unbind()).toBe(memory);
      expect(parameter.bound).toBe(false);
    });
  });

  test("refuses memory of another shape", () => {
    scope(() => {
      const parameter = new Parameter([2, 3], zeros);
      expect(() => parameter.bind(ones([3, 2]))).toThrow(
        expect.objectContaining({ code: "PARAMETER_SHAPE" }),
      );
      expect(() => parameter.bind(ones([6]))).toThrow(expect.objectContaining({ code: "PARAMETER_SHAPE" }));
    });
  });

  test("refuses impossible sizes and data of another length", () => {
    const refusal = expect.objectContaining({ code: "PARAMETER_SHAPE" });
    expect(() => new Parameter([2, -1], zeros)).toThrow(refusal);
    expect(() => new Parameter([2, 1.5], zeros)).toThrow(refusal);
    expect(() => new Parameter([2], { kind: "data", values: [1, 2, 3] })).toThrow(refusal);
  });
});
