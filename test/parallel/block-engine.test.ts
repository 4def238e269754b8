import { describe, expect, it } from "vitest";
import { Linear, Module, ModuleList, normal, Parameter } from "../../src/compute/nn/index.ts";
import { ones, scope, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { forwardBackward } from "../fixtures/forward-backward.ts";
import { compare, Mix, planOf, width } from "./beside-autograd.ts";
import { readyEngine } from "./ready-engine.ts";

/** A block with two outputs, one of which is for the caller's own use. */
class Fork extends Module {
  readonly weight = new Parameter([width, width], normal(0, 0.5));
  override forward(x: Tensor, options: { readonly scale: number }): { main: Tensor; side: Tensor } {
    const y = x.matmul(this.weight.tensor);
    return { main: y.mul(options.scale), side: y.sigmoid() };
  }
}

describe("BlockEngine", () => {
  it("gives a chain of blocks the gradients of plain autograd, the last block's first", () => {
    class Chain extends Module {
      readonly embed = new Linear(width, width);
      readonly layers = new ModuleList([new Mix(), new Mix(), new Mix()]);
      readonly head = new Linear(width, 1);
      override forward(x: Tensor): Tensor {
        let y = this.embed.forward(x);
        for (const layer of this.layers) y = layer.forward(y);
        return this.head.forward(y);
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().mean();
      }
    }
    expect(compare(new Chain()).complete).toEqual(["layers.2", "layers.1", "layers.0", "root"]);
  });

  it("sums the gradient of a root parameter that is used before and after the blocks", () => {
    class Tied extends Module {
      readonly weight = new Parameter([width, width], normal(0, 0.5));
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        let y = x.matmul(this.weight.tensor);
        for (const layer of this.layers) y = layer.forward(y);
        return y.matmul(this.weight.tensor.transpose(0, 1));
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new Tied());
  });

  it("sums the gradient of a tensor that several blocks read", () => {
    class Shared extends Module {
      readonly embed = new Linear(width, width);
      readonly layers = new ModuleList([new Mix(), new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        const context = this.embed.forward(x).tanh();
        let y = context;
        for (const layer of this.layers) y = layer.forward(y, context);
        return y;
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new Shared());
  });

  it("walks a piece of the outer graph that two block inputs share", () => {
    class Branches extends Module {
      readonly embed = new Linear(width, width);
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        const trunk = this.embed.forward(x).tanh();
        const [left, right] = [...this.layers] as [Mix, Mix];
        return left.forward(trunk.mul(2)).add(right.forward(trunk.sigmoid())).add(trunk);
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new Branches());
  });

  it("sums the gradients of a block that runs twice and hands them on once", () => {
    class Twice extends Module {
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        const [a, b] = [...this.layers] as [Mix, Mix];
        return a.forward(b.forward(a.forward(x)));
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    expect(compare(new Twice()).complete.filter((name) => name === "layers.0")).toHaveLength(1);
  });

  it("sums the gradient of a parameter that two blocks share, which is the root's", () => {
    class SharedWeight extends Module {
      readonly layers: ModuleList<Mix>;
      constructor() {
        super();
        const [a, b] = [new Mix(), new Mix()];
        b.weight = a.weight;
        this.layers = new ModuleList([a, b, new Mix()]);
      }
      override forward(x: Tensor): Tensor {
        let y = x;
        for (const layer of this.layers) y = layer.forward(y);
        return y;
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new SharedWeight());
  });

  it("gives a block that was not run a gradient of zero", () => {
    class Skips extends Module {
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        return (this.layers.at(1) as Mix).forward(x);
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new Skips());
  });

  it("gives a block whose output is not used a gradient of zero", () => {
    class Ignores extends Module {
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        const [used, ignored] = [...this.layers] as [Mix, Mix];
        ignored.forward(x);
        return used.forward(x);
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new Ignores());
  });

  it("passes objects in and out of blocks, options and several tensors alike", () => {
    class Forks extends Module {
      readonly layers = new ModuleList([new Fork(), new Fork()]);
      override forward(x: Tensor): Tensor {
        let y = x;
        let sides = zeros([3, width], { dtype: "float64" });
        for (const layer of this.layers) {
          const { main, side } = layer.forward(y, { scale: 0.5 });
          y = main;
          sides = sides.add(side);
        }
        return y.add(sides);
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    compare(new Forks());
  });

  it("an abandoned pass collects and sends no gradients", () => {
    class One extends Module {
      readonly layers = new ModuleList([new Mix()]);
      override forward(x: Tensor): Tensor {
        return (this.layers.at(0) as Mix).forward(x).sum();
      }
    }
    const one = new One();
    const reduced: string[] = [];
    const engine = readyEngine(planOf(one), { onReduced: (block) => void reduced.push(block) });
    engine.begin("step");
    const loss = () => one.forward(ones([1, width]));
    scope(() => engine.forward({ microBatch: 0, chunk: 0 }, loss));
    engine.abandon();
    expect(reduced).toEqual([]);
    forwardBackward(engine, loss);
    expect(reduced).toEqual(["layers.0"]);
  });
});
