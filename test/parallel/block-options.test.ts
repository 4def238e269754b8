import { describe, expect, it } from "vitest";
import { Linear, Module, ModuleList } from "../../src/compute/nn/index.ts";
import { type BlockOptions, block, Mesh, planBlocks } from "../../src/compute/parallel/index.ts";

class Model extends Module {
  readonly layers: ModuleList<Linear>;
  constructor(options: BlockOptions) {
    super();
    this.layers = new ModuleList([block(new Linear(2, 2), options), new Linear(2, 2)]);
  }
  override forward(): void {}
}

const planned = (options: BlockOptions) => {
  const { layouts, units } = planBlocks(new Model(options), { zero: 2, mesh: new Mesh({}), rank: 0 });
  return { zero: layouts[0]?.zero, recompute: units[1]?.recompute, other: layouts[1]?.zero };
};

describe("block", () => {
  it.each([
    ["oss", 1],
    ["sdp", 2],
    ["fsdp", 3],
    [0, 0],
    [3, 3],
  ] as const)("takes level %s as the run's option takes it", (zero, level) => {
    expect(planned({ zero })).toEqual({ zero: level, recompute: false, other: 2 });
  });

  it("options that a block omits are the run's", () => {
    expect(planned({ recompute: true })).toEqual({ zero: 2, recompute: true, other: 2 });
  });

  it.each([
    [{ zero: 4 }, "ZERO_LEVEL", "expected level 0, 1, 2 or 3, or oss, sdp or fsdp, got 4"],
    [{ zero: -1 }, "ZERO_LEVEL", "got -1"],
    [{ zero: Number.NaN }, "ZERO_LEVEL", "got NaN"],
    [{ zero: "zero3" }, "ZERO_LEVEL", "got zero3"],
    [{ zeroLevel: 2 }, "BLOCK_OPTION", "expected an option, got zeroLevel (there are zero, recompute)"],
    [{ recompute: "yes" }, "BLOCK_OPTION", 'names of the block\'s modules, got "yes"'],
    [{ recompute: [1] }, "BLOCK_OPTION", "got [1]"],
  ])("refuses %o", (options, code, message) => {
    expect(() => block(new Linear(2, 2), options as BlockOptions)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });
});
