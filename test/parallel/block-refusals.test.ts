import { describe, expect, it } from "vitest";
import { BatchNorm1d, Linear, Module, ModuleList, normal, Parameter } from "../../src/compute/nn/index.ts";
import type { PassKey } from "../../src/compute/parallel/index.ts";
import {
  arange,
  full,
  hold,
  keep,
  liveTensors,
  ones,
  scope,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import { forwardBackward } from "../fixtures/forward-backward.ts";
import { compare, Mix, planOf, width } from "./beside-autograd.ts";
import { readyEngine } from "./ready-engine.ts";

describe("BlockEngine", () => {
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

  it("refuses it in the first pass of each program, whatever other programs have shown", () => {
    class Chain extends Module {
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(x: Tensor): Tensor {
        let y = x;
        for (const layer of this.layers) y = layer.forward(y);
        return y.square().sum();
      }
    }
    const model = new Chain();
    const engine = readyEngine(planOf(model));
    const pass = (key: PassKey, body: () => Tensor) =>
      scope(() => {
        engine.begin("step");
        engine.forward(key, body);
        engine.backward(key, [full([], 1)]);
        engine.flush();
      });
    const lossOf = () => model.forward(ones([2, width]));
    const penalised = () => lossOf().add((model.layers.at(1) as Mix).weight.tensor.square().sum());
    const key = { microBatch: 0, chunk: 0 };
    pass({ ...key, program: "loss" }, lossOf);
    expect(() => pass({ ...key, program: "penalised" }, penalised)).toThrow(/of another block/);
    pass(key, lossOf);
    expect(() => pass({ ...key, repeat: 1 }, penalised)).toThrow(/of another block/);
    engine.dispose();
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

  it("reading a parameter outside its block throws if it has memory only while gathered", () => {
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
      const engine = readyEngine(planOf(model), { paged: [0] });
      engine.begin("step");
      const train = () => forwardBackward(engine, () => model.forward(ones([1, width])));
      if (reads) expect(train).toThrow(expect.objectContaining({ code: "TENSOR_OFFLOADED" }));
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
    const engine = readyEngine(planOf(model), { paged: [0] });
    engine.begin("evaluate");
    const evaluate = () => scope(() => engine.evaluate(() => model.forward()));
    expect(evaluate).toThrow(/got a view of its parameters, which are offloaded/);
    engine.dispose();
  });

  it("a pass whose block throws leaves nothing: no tensors, and no writes to buffers", () => {
    class Normed extends Module {
      readonly norm = new BatchNorm1d(width);
      readonly mix = new Mix();
      fails = false;
      override forward(x: Tensor): Tensor {
        const y = this.mix.forward(this.norm.forward(x));
        if (this.fails) throw new Error("the block has a bug");
        return y;
      }
    }
    class One extends Module {
      readonly layers = new ModuleList([new Normed()]);
      override forward(x: Tensor): Tensor {
        return (this.layers.at(0) as Normed).forward(x.mul(2)).square().sum();
      }
    }
    const reducedOf = (fails: boolean) => {
      const model = new One();
      const reduced: string[] = [];
      const engine = readyEngine(planOf(model), {
        onReduced: (block, values) => reduced.push(`${block} ${JSON.stringify([...values])}`),
      });
      const key = { microBatch: 0, chunk: 0 };
      const run = () => {
        const x = arange(3 * width)
          .to("float32")
          .view([3, width])
          .requiresGrad_();
        return engine.forward(key, () => model.forward(x)).result as Tensor;
      };
      engine.begin("step");
      if (fails) {
        const before = liveTensors();
        (model.layers.at(0) as Normed).fails = true;
        expect(() => scope(run)).toThrow("the block has a bug");
        expect(liveTensors()).toBe(before);
        (model.layers.at(0) as Normed).fails = false;
      }
      scope(run);
      scope(() => engine.backward(key, [full([], 1)], { chunk: true, step: true }));
      engine.dispose();
      return reduced;
    };
    expect(reducedOf(true)).toEqual(reducedOf(false));
  });

  it("a pass whose body throws leaves nothing, received tensors included", () => {
    class Two extends Module {
      readonly layers = new ModuleList([new Mix(), new Mix()]);
      override forward(): void {}
    }
    const model = new Two();
    const engine = readyEngine(planOf(model));
    const before = liveTensors();
    const received = hold(() => ones([1, width]).requiresGrad_(true));
    const body = (): Tensor => {
      (model.layers.at(0) as Mix).forward(received);
      throw new Error("the job has a bug");
    };
    expect(() => scope(() => engine.forward({ microBatch: 0, chunk: 0 }, body, [received]))).toThrow(
      "the job has a bug",
    );
    expect(liveTensors()).toBe(before);
  });
});
