import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import {
  activations,
  BatchNorm1d,
  Dropout,
  Embedding,
  Linear,
  Module,
  ModuleList,
  Sequential,
} from "../../src/compute/nn/index.ts";
import type { Tensor } from "../../src/compute/tensor/index.ts";

class Layer extends Module {
  readonly fc = new Linear(4, 4, { bias: false, activation: "gelu" });
  readonly drop = new Dropout(0.1);
  readonly scale = 0.5;

  override forward(x: Tensor): Tensor {
    return this.drop.forward(this.fc.forward(x));
  }
}

class Net extends Module {
  readonly embed = new Embedding(10, 4);
  readonly layers = new ModuleList([new Layer(), new Layer(), new Layer()]);
  readonly head = new Sequential(new Linear(4, 4), activations.gelu, new BatchNorm1d(4));

  override forward(): void {}
}

describe("console.log of a module", () => {
  it("is the tree that torch prints: classes, settings, the shapes of parameters and buffers, equal layers once", () => {
    const net = new Net();
    net.embed.weight.trainable = false;
    expect(inspect(net)).toBe(
      `Net(
  (embed): Embedding(weight [10,4] frozen)
  (layers): ModuleList(
    (0-2): 3 x Layer(
      scale=0.5
      (fc): Linear(activation=gelu, weight [4,4])
      (drop): Dropout(p=0.1)
    )
  )
  (head): Sequential(
    (0): Linear(weight [4,4], bias [4])
    (1): gelu()
    (2): BatchNorm1d(eps=0.00001, momentum=0.1, weight [4], bias [4], running_mean [4] buffer, running_var [4] buffer, num_batches_tracked [] buffer)
  )
)`,
    );
    expect(inspect({ drop: net.layers[0]?.drop })).toBe("{ drop: Dropout(p=0.1) }");
  });

  it("never throws: one that is below itself, and one that hides modules in an array, say so", () => {
    const net = new Net();
    Object.assign(net.head.at(0) as Linear, { owner: net });
    expect(inspect(net)).toContain("(owner): Net(…)");
    Object.assign(net, { more: [new Dropout(0)] });
    expect(inspect(net)).toMatch(/^Net\(\[Net\] expected modules .* ModuleList.*\)$/);
  });
});
