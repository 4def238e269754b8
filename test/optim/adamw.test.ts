import { describe, expect, test } from "vitest";
import {
  AdamW,
  checkOptimizers,
  type GroupRule,
  type OptimizerSpec,
  type ParameterGroup,
} from "../../src/compute/optim/index.ts";

const parameters = new Map([
  ["wte.weight", { shape: [16, 4] }],
  ["h.0.ln_1.weight", { shape: [4] }],
  ["h.0.attn.c_attn.weight", { shape: [4, 12] }],
  ["h.0.attn.c_attn.bias", { shape: [12] }],
]);

describe("AdamW", () => {
  test("decays matrices and leaves biases and norms alone unless asked otherwise", () => {
    const { groups } = new AdamW(parameters, { weightDecay: 0.1 });
    expect(groups).toEqual([
      { names: ["wte.weight", "h.0.attn.c_attn.weight"], lrFactor: 1, weightDecay: 0.1 },
      { names: ["h.0.ln_1.weight", "h.0.attn.c_attn.bias"], lrFactor: 1, weightDecay: 0 },
    ]);
  });

  test("decays every parameter where asked to", () => {
    const { groups } = new AdamW(parameters, { weightDecay: 0.1, decay: "every parameter" });
    expect(groups).toEqual([{ names: [...parameters.keys()], lrFactor: 1, weightDecay: 0.1 }]);
  });

  test("gives parameters that a rule matches their own factor and decay, the first rule first", () => {
    const { groups } = new AdamW(parameters, {
      weightDecay: 0.1,
      groups: [
        { match: /^wte/, weightDecay: 0 },
        { match: (_, shape) => shape.length === 2, lrFactor: 0.5 },
      ],
    });
    expect(groups).toEqual([
      { names: ["wte.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.bias"], lrFactor: 1, weightDecay: 0 },
      { names: ["h.0.attn.c_attn.weight"], lrFactor: 0.5, weightDecay: 0.1 },
    ]);
  });

  test.each(["", "g", "y", "gy"])("matches every name by a pattern with the flags %j", (flags) => {
    const match = new RegExp("h.0", flags);
    const names = [...parameters.keys()].filter((name) => name.startsWith("h.0"));
    const namesIn = (groups: readonly ParameterGroup[]) => groups.flatMap((group) => group.names);
    const { groups } = new AdamW(parameters, { groups: [{ match, lrFactor: 2 }] });
    const matched = namesIn(groups.filter(({ lrFactor }) => lrFactor === 2));
    expect(new Set(matched)).toEqual(new Set(names));
    expect(new Set(namesIn(new AdamW(parameters, { only: match }).groups))).toEqual(new Set(names));
  });

  test("an optimizer arrives complete in another thread", () => {
    const optimizer = new AdamW(parameters, { lr: 3e-4, betas: [0.9, 0.95] });
    expect(structuredClone(optimizer)).toEqual({ ...optimizer });
    expect(optimizer).toMatchObject({ kind: "adamw", lr: 3e-4, betas: [0.9, 0.95], eps: 1e-8 });
  });

  test.each([
    ["a negative learning rate", { lr: -1 }],
    ["a learning rate that is no number", { lr: Number.NaN }],
    ["a beta of one", { betas: [0.9, 1] }],
    ["a negative eps", { eps: -1e-8 }],
    ["parameters to decay by no known name", { decay: "all" as "matrices" }],
    ["an infinite decay", { weightDecay: Number.POSITIVE_INFINITY }],
    ["a negative decay in a rule", { groups: [{ match: /wte/, weightDecay: -1 }] }],
    ["a negative factor in a rule", { groups: [{ match: /wte/, lrFactor: -1 }] }],
    ["a rule that matches nothing", { groups: [{ match: /no such parameter/ }] }],
    ["a rule's option by no known name", { groups: [{ match: /wte/, lrfactor: 2 } as object as GroupRule] }],
  ] as const)("refuses %s", (_, options) => {
    expect(() => new AdamW(parameters, options)).toThrow(
      expect.objectContaining({ code: "OPTIMIZER_OPTION" }),
    );
  });

  test("refuses to optimize nothing", () => {
    expect(() => new AdamW([])).toThrow(expect.objectContaining({ code: "OPTIMIZER_OPTION" }));
  });

  test("refuses a spec of a kind that is not there", () => {
    const spec = { ...new AdamW(parameters), kind: "adamx" } as unknown as OptimizerSpec;
    expect(() => checkOptimizers([spec], parameters as never)).toThrow(
      /kind to be one of adamw, adam, .*, own, got adamx/,
    );
  });
});
