import { describe, expect, it } from "vitest";
import { Linear, Module, ModuleList, materialize, normal, Parameter } from "../../src/nn/index.ts";
import { BlockEngine, Mesh, planBlocks, type ShardPort } from "../../src/parallel/index.ts";
import { backward, keep, ones, scope, type Tensor, tensor, zeros } from "../../src/tensor/index.ts";
import { forwardBackward } from "../fixtures/forward-backward.ts";

const width = 4;

/** A block that reads a second tensor too. */
class Mix extends Module {
  weight = new Parameter([width, width], normal(0, 0.5));
  override forward(x: Tensor, other?: Tensor): Tensor {
    const y = x.matmul(this.weight.tensor).tanh();
    return other === undefined ? y : y.add(other);
  }
}

/** A block with two outputs, one of which is for the caller's own use. */
class Fork extends Module {
  readonly weight = new Parameter([width, width], normal(0, 0.5));
  override forward(x: Tensor, options: { readonly scale: number }): { main: Tensor; side: Tensor } {
    const y = x.matmul(this.weight.tensor);
    return { main: y.mul(options.scale), side: y.sigmoid() };
  }
}

/** Gradients by parameter name, from plain autograd on one device. */
function byAutograd(model: Module, lossOf: (x: Tensor) => Tensor, x: Tensor): Map<string, number[]> {
  materialize(model, { seed: 3, dtype: "float64" });
  return scope(() => {
    backward([lossOf(x)]);
    return new Map(
      [...model.namedParameters()].map(([name, { tensor: value, numel }]) => [
        name,
        value.grad === null
          ? new Array<number>(numel).fill(0)
          : [...(value.grad.toTypedArray() as Float64Array)],
      ]),
    );
  });
}

interface ByEngine {
  readonly gradients: Map<string, number[]>;
  /** Blocks in the order in which their gradients became whole. */
  readonly whole: string[];
}

/** The same through the engine, with a shard that answers at once. */
function byEngine(model: Module, lossOf: (x: Tensor) => Tensor, x: Tensor): ByEngine {
  const plan = planBlocks(model, { zero: 3, mesh: new Mesh({}), rank: 0 });
  const gradients = new Map<string, number[]>();
  const whole: string[] = [];
  const port: ShardPort<number> = {
    start: (block) => block,
    wait: () => {},
    release: () => {},
    reduce: (block, flat) => {
      const layout = plan.layouts[block];
      whole.push(layout?.name ?? "");
      for (const { name, offset, numel } of layout?.parameters ?? []) {
        gradients.set(name, [...(flat.narrow(0, offset, numel).toTypedArray() as Float64Array)]);
      }
      flat.dispose();
    },
  };
  const values = new Map([...model.namedParameters()].map(([name, parameter]) => [name, parameter.tensor]));
  const engine = new BlockEngine(plan, port, { dtype: "float64", prefetchBytes: 0 });
  engine.bind(
    plan.layouts.map((layout) => {
      const full = keep(zeros([layout.numel], { dtype: "float64" }));
      scope(() => {
        for (const { name, offset, numel } of layout.parameters) {
          full.narrow(0, offset, numel).copy_((values.get(name) as Tensor).detach().view([numel]));
        }
      });
      return full;
    }),
  );
  engine.begin("step");
  forwardBackward(engine, () => lossOf(x));
  engine.dispose();
  return { gradients, whole };
}

function compare(model: Module & { lossOf(x: Tensor): Tensor }): ByEngine {
  const x = tensor(
    Float64Array.from({ length: 3 * width }, (_, index) => Math.sin(index)),
    { shape: [3, width] },
  );
  const lossOf = (input: Tensor) => model.lossOf(input);
  const expected = byAutograd(model, lossOf, x);
  const got = byEngine(model, lossOf, x);
  expect([...got.gradients.keys()].toSorted()).toEqual([...expected.keys()].toSorted());
  for (const [name, values] of expected) {
    // Sums of a few float64 terms may be added in another order.
    for (const [index, value] of (got.gradients.get(name) ?? []).entries()) {
      expect(value, name).toBeCloseTo(values[index] ?? Number.NaN, 12);
    }
  }
  return got;
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
    expect(compare(new Chain()).whole).toEqual(["layers.2", "layers.1", "layers.0", "root"]);
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
    expect(compare(new Twice()).whole.filter((name) => name === "layers.0")).toHaveLength(1);
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

  it("refuses a tensor that a block keeps aside and the loss reads, which would lose its gradient", () => {
    class Keeping extends Mix {
      kept: Tensor | undefined;
      override forward(x: Tensor): Tensor {
        const y = super.forward(x);
        this.kept = keep(y.mul(2));
        return y;
      }
    }
    class Recording extends Module {
      readonly layers = new ModuleList([new Mix(), new Keeping(), new Mix()]);
      override forward(x: Tensor): Tensor {
        let y = x;
        for (const layer of this.layers) y = layer.forward(y);
        return y;
      }
      lossOf(x: Tensor): Tensor {
        const y = this.forward(x).square().sum();
        return y.add((this.layers.at(1) as Keeping).kept as Tensor).sum();
      }
    }
    expect(() => compare(new Recording())).toThrow(/\[outside the blocks\] expected to reach blocks only/);
  });

  it("refuses a tensor that one block keeps aside and another reads", () => {
    class Board extends Module {
      note: Tensor | undefined;
      override forward(): void {}
    }
    class Reading extends Mix {
      readonly board: Board;
      constructor(board: Board) {
        super();
        this.board = board;
      }
      override forward(x: Tensor): Tensor {
        const y = super.forward(this.board.note === undefined ? x : x.add(this.board.note));
        this.board.note = keep(y.sin());
        return y;
      }
    }
    class Passing extends Module {
      readonly board = new Board();
      readonly layers = new ModuleList([new Reading(this.board), new Reading(this.board)]);
      override forward(x: Tensor): Tensor {
        this.board.note = undefined;
        let y = x;
        for (const layer of this.layers) y = layer.forward(y);
        return y;
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    expect(() => compare(new Passing())).toThrow(/\[block layers\.1\] expected to reach blocks only/);
  });

  it("refuses a loss that reads a block's parameter from outside", () => {
    class Penalised extends Module {
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        const [first, second] = [...this.layers] as [Mix, Mix];
        return first.forward(x).square().sum().add(second.weight.tensor.square().sum());
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x);
      }
    }
    expect(() => compare(new Penalised())).toThrow(/got a tensor or a parameter of another block/);
  });

  it("refuses tensors in class instances, which it would overlook", () => {
    class Pair {
      readonly left: Tensor;
      constructor(left: Tensor) {
        this.left = left;
      }
    }
    class Taking extends Module {
      readonly weight = new Parameter([width, width], normal(0, 0.5));
      override forward(pair: Pair): Tensor {
        return pair.left.matmul(this.weight.tensor);
      }
    }
    class Boxed extends Module {
      readonly embed = new Linear(width, width);
      readonly layers = new ModuleList([new Taking()]);
      override forward(x: Tensor): Tensor {
        return (this.layers.at(0) as Taking).forward(new Pair(this.embed.forward(x)));
      }
      lossOf(x: Tensor): Tensor {
        return this.forward(x).square().sum();
      }
    }
    expect(() => compare(new Boxed())).toThrow(/got one in a Pair \(pass \{ \.\.\.fields \} instead\)/);
  });

  it("refuses to read what has no memory but while it is gathered, outside its block", () => {
    class Spying extends Module {
      readonly layers = new ModuleList([new Mix()]);
      readonly reads: boolean;
      constructor(reads: boolean) {
        super();
        this.reads = reads;
      }
      override forward(x: Tensor): Tensor {
        const y = (this.layers.at(0) as Mix).forward(x).sum();
        const [parameter] = this.layers.namedParameters().values();
        return this.reads ? y.add((parameter as Parameter).tensor.detach().sum()) : y;
      }
    }
    for (const reads of [false, true]) {
      const model = new Spying(reads);
      const plan = planBlocks(model, { zero: 3, mesh: new Mesh({}), rank: 0 });
      const port: ShardPort<number> = {
        start: () => 0,
        wait: () => {},
        release: () => {},
        reduce: (_block, gradient) => gradient.dispose(),
      };
      const engine = new BlockEngine(plan, port, { dtype: "float32", prefetchBytes: 0, paged: [0] });
      engine.bind(plan.layouts.map((layout) => keep(zeros([layout.numel]))));
      engine.begin("step");
      const train = () => forwardBackward(engine, () => model.forward(ones([1, width])));
      if (reads) expect(train).toThrow(expect.objectContaining({ code: "TENSOR_AWAY" }));
      else train();
      engine.dispose();
    }
  });

  it("refuses a view of parameters that have no memory once their block has returned", () => {
    class Leaking extends Mix {
      override forward(): Tensor {
        return this.weight.tensor.narrow(0, 0, 1);
      }
    }
    class Model extends Module {
      readonly layers = new ModuleList([new Leaking()]);
      override forward(): Tensor {
        return (this.layers.at(0) as Leaking).forward().sum();
      }
    }
    const model = new Model();
    const plan = planBlocks(model, { zero: 3, mesh: new Mesh({}), rank: 0 });
    const port: ShardPort<number> = { start: () => 0, wait: () => {}, release: () => {}, reduce: () => {} };
    const engine = new BlockEngine(plan, port, { dtype: "float32", prefetchBytes: 0, paged: [0] });
    engine.bind(plan.layouts.map((layout) => keep(zeros([layout.numel]))));
    engine.begin("evaluate");
    const evaluate = () => scope(() => engine.evaluate(() => model.forward()));
    expect(evaluate).toThrow(/got a view of its parameters, which are offloaded/);
    engine.dispose();
  });

  it("collects nothing and hands nothing on of a pass that is given up", () => {
    const model = new ModuleList([new Mix()]);
    class One extends Module {
      readonly layers = model;
      override forward(x: Tensor): Tensor {
        return (this.layers.at(0) as Mix).forward(x).sum();
      }
    }
    const one = new One();
    const plan = planBlocks(one, { zero: 3, mesh: new Mesh({}), rank: 0 });
    const reduced: number[] = [];
    const port = {
      start: () => 0,
      wait: () => {},
      release: () => {},
      reduce: (block: number) => void reduced.push(block),
    };
    const engine = new BlockEngine(plan, port, { dtype: "float32", prefetchBytes: 0 });
    engine.bind(plan.layouts.map((layout) => keep(zeros([layout.numel]))));
    engine.begin("step");
    const loss = () => one.forward(ones([1, width]));
    scope(() => engine.forward({ microBatch: 0, chunk: 0 }, loss));
    engine.abandon();
    expect(reduced).toEqual([]);
    forwardBackward(engine, loss);
    expect(reduced).toEqual([0]);
  });
});
