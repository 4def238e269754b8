import { describe, expect, test } from "vitest";
import { cutBlocks, Linear, Module, ModuleList } from "../../src/compute/nn/index.ts";

class Network extends Module {
  readonly embed = new Linear(2, 2, { bias: false });
  readonly layers: ModuleList<Linear>;

  constructor(layers: Linear[]) {
    super();
    this.layers = new ModuleList(layers);
  }

  override forward(): void {}
}

const names = (parameters: ReadonlyMap<string, unknown>) => [...parameters.keys()];

describe("cutting a model into blocks", () => {
  test("makes one block of each list item and leaves the others in the rest", () => {
    const network = new Network([new Linear(2, 2), new Linear(2, 2)]);
    const { blocks, rest } = cutBlocks(network);
    expect(blocks.map(({ name, parameters }) => [name, names(parameters)])).toEqual([
      ["layers.0", ["layers.0.weight", "layers.0.bias"]],
      ["layers.1", ["layers.1.weight", "layers.1.bias"]],
    ]);
    expect(names(rest)).toEqual(["embed.weight"]);
    expect(blocks[1]?.module).toBe(network.layers.at(1));
  });

  test("puts a parameter in the rest that two blocks share, or a block and the rest", () => {
    const layers = [new Linear(2, 2), new Linear(2, 2), new Linear(2, 2)];
    layers[1]!.weight = layers[0]!.weight;
    const network = new Network(layers);
    layers[2]!.weight = network.embed.weight;
    const { blocks, rest } = cutBlocks(network);
    expect(blocks.map(({ parameters }) => names(parameters))).toEqual([
      ["layers.0.bias"],
      ["layers.1.bias"],
      ["layers.2.bias"],
    ]);
    expect(names(rest)).toEqual(["embed.weight", "layers.0.weight"]);
  });

  test("makes one block of a module that stands in the list twice", () => {
    const layer = new Linear(2, 2);
    const { blocks, rest } = cutBlocks(new Network([layer, layer]));
    expect(blocks.map(({ name, parameters }) => [name, names(parameters)])).toEqual([
      ["layers.0", ["layers.0.weight", "layers.0.bias"]],
    ]);
    expect(names(rest)).toEqual(["embed.weight"]);
  });

  test("cuts at the outermost lists only", () => {
    class Stage extends Module {
      readonly inner = new ModuleList([new Linear(2, 2), new Linear(2, 2)]);
      override forward(): void {}
    }
    const { blocks } = cutBlocks(new ModuleList([new Stage(), new Stage()]));
    expect(blocks.map(({ name }) => name)).toEqual(["0", "1"]);
    expect(blocks[0]?.parameters.size).toBe(4);
  });
});
