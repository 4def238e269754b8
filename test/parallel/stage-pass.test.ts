import { describe, expect, it } from "vitest";
import {
  cutBlocks,
  Embedding,
  Linear,
  Module,
  ModuleList,
  materialize,
  normal,
  Parameter,
} from "../../src/compute/nn/index.ts";
import {
  type BlockEngine,
  type BlockPlan,
  cutStages,
  Mesh,
  planBlocks,
  traceUse,
} from "../../src/compute/parallel/index.ts";
import { backward, hold, scope, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { readyEngine } from "./ready-engine.ts";

const width = 4;
const dtype = "float64";
const everything = { chunk: true, step: true };

/** A block that reads what all blocks read, a mask of the batch and an option, and returns two tensors. */
class Layer extends Module {
  readonly weight = new Parameter([width, width], normal(0, 0.5));
  override forward(
    x: Tensor,
    side: Tensor,
    options: { readonly context: Tensor; readonly mask: Tensor },
  ): [Tensor, Tensor] {
    const y = x.matmul(this.weight.tensor).tanh().mul(options.mask).add(options.context);
    return [y, side.add(y.sum(-1))];
  }
}

/** An embedding that is also the head; a context that every block reads; a side sum that passes through all of them. */
class Model extends Module {
  readonly embed = new Embedding(7, width);
  readonly context = new Linear(width, width);
  readonly layers = new ModuleList(Array.from({ length: 4 }, () => new Layer()));
  readonly norm = new Parameter([width], normal(1, 0.1));

  /** Layers that a forward leaves out. */
  left: readonly number[] = [];

  override forward(ids: Tensor): Tensor {
    const mask = ids.ne(0).to(dtype).unsqueeze(-1); // [T, 1]
    let x = this.embed.forward(ids);
    const context = this.context.forward(x);
    let side = zeros([ids.numel], { dtype });
    for (const [index, layer] of [...this.layers].entries())
      if (!this.left.includes(index)) [x, side] = layer.forward(x, side, { context, mask });
    const logits = x.mul(this.norm.tensor).matmul(this.embed.weight.tensor.transpose(0, 1));
    return logits.square().mean().add(side.mean());
  }
}

/** A block behind the first stage reads a tensor that is not among its arguments' predecessors. */
class Smuggler extends Model {
  override forward(ids: Tensor): Tensor {
    let x = this.embed.forward(ids);
    const hidden = this.context.forward(x);
    const mask = ids.ne(0).to(dtype).unsqueeze(-1);
    let side = zeros([ids.numel], { dtype });
    for (const [index, layer] of [...this.layers].entries()) {
      [x, side] = layer.forward(x, side, { context: index < 3 ? x : hidden, mask });
    }
    return x.sum();
  }
}

function wholeGradients(lengths: readonly number[]): Map<string, number[]> {
  return scope(() => {
    const model = new Model();
    materialize(model, { seed: 3, dtype });
    for (const length of lengths) backward([model.forward(idsOf(length))]);
    return new Map(
      [...model.namedParameters()].map(([name, parameter]) => [
        name,
        valuesOf(parameter.tensor.grad as Tensor),
      ]),
    );
  });
}

function planOf(model: Model, stage: number): BlockPlan {
  const { blocks, rest } = cutBlocks(model);
  const use = traceUse(
    model,
    blocks.map(({ module }) => module),
    rest.values(),
    () => model.forward(idsOf(3)),
  );
  const parameters = blocks.map((block) => [...block.parameters.values()]);
  const stages = cutStages(parameters, use, { numStages: 2, numChunks: 1 });
  return planBlocks(model, { zero: 3, mesh: new Mesh({ pp: 2 }), rank: stage, stages });
}

/** One stage of two, whose shard sums gradients into `into`. */
function stageOf(model: Model, stage: number, into: Map<string, number[]>): BlockEngine<number> {
  const whole = new Model();
  materialize(whole, { seed: 3, dtype });
  const values = new Map([...whole.namedParameters()].map(([name, { tensor }]) => [name, tensor]));
  const onReduced = (_block: string, gradients: ReadonlyMap<string, number[]>) => {
    for (const [name, got] of gradients) {
      const before = into.get(name);
      into.set(name, before === undefined ? got : got.map((value, index) => value + (before[index] ?? 0)));
    }
  };
  const engine = readyEngine(planOf(model, stage), { dtype, values, onReduced });
  engine.begin("step");
  return engine;
}

/** Sends every micro-batch through both stages and back, all forwards first. */
function stagedGradients(lengths: readonly number[]): Map<string, number[]> {
  const gradients = new Map<string, number[]>();
  const [first, last] = [new Model(), new Model()];
  const engines = [stageOf(first, 0, gradients), stageOf(last, 1, gradients)] as const;
  scope(() => {
    for (const [microBatch, length] of lengths.entries()) {
      const key = { microBatch, chunk: 0 };
      const { sent } = engines[0].forward(key, () => first.forward(idsOf(length)));
      const received = sent.map((each) => {
        const leaf = hold(each.detach());
        return each.requiresGrad ? leaf.requiresGrad_() : leaf;
      });
      const { result } = engines[1].forward(key, () => last.forward(idsOf(length)), received);
      expect(result?.device).toBe("cpu");
    }
    for (const microBatch of lengths.keys()) {
      const key = { microBatch, chunk: 0 };
      const isLast = microBatch === lengths.length - 1;
      const completion = isLast ? everything : { chunk: false, step: false };
      const one = tensor(1, { dtype });
      const answers = engines[1].backward(key, [one], completion);
      engines[0].backward(key, answers, completion);
    }
  });
  for (const engine of engines) engine.dispose();
  return gradients;
}

const idsOf = (length: number) =>
  tensor(
    Array.from({ length }, (_, index) => index % 7),
    { dtype: "int64" },
  );

function valuesOf(values: Tensor): number[] {
  return [...(values.contiguous().toTypedArray() as Float64Array)];
}

describe("two stages of one model", () => {
  it("get the gradients of one device: tied parameters, several tensors, options, a tensor every block reads", () => {
    // Sums of a few float64 terms are added in another order.
    compare(stagedGradients([5]), wholeGradients([5]), 12);
  });

  it("take micro-batches of different lengths", () => {
    // Micro-batches are added up in float32.
    compare(stagedGradients([3, 6, 2]), wholeGradients([3, 6, 2]), 5);
  });

  it.each([[[0]], [[0, 1]], [[1, 2]], [[0, 1, 2]], [[2]], [[3]]])(
    "compute a forward that leaves out layers %j",
    (left) => {
      const whole = new Model();
      materialize(whole, { seed: 3, dtype });
      const models = [new Model(), new Model()] as const;
      const engines = models.map((model, stage) => stageOf(model, stage, new Map()));
      scope(() => {
        // A complete one before and after.
        for (const each of [[], left, []]) {
          for (const model of [whole, ...models]) Object.assign(model, { left: each });
          let sent: readonly Tensor[] = [];
          for (const [stage, engine] of engines.entries()) {
            const model = models[stage] as Model;
            const forwarded = engine.evaluateChunk(0, () => model.forward(idsOf(5)), sent);
            sent = forwarded.sent;
            if (stage === 1) expect(forwarded.result?.item()).toBeCloseTo(whole.forward(idsOf(5)).item(), 12);
          }
        }
      });
      for (const engine of engines) engine.dispose();
    },
  );

  it("refuse a block that reads what only an earlier stage has", () => {
    const gradients = new Map<string, number[]>();
    const [first, last] = [new Smuggler(), new Smuggler()];
    const engines = [stageOf(first, 0, gradients), stageOf(last, 1, gradients)] as const;
    const key = { microBatch: 0, chunk: 0 };
    scope(() => {
      const { sent } = engines[0].forward(key, () => first.forward(idsOf(3)));
      const received = sent.map((each) => hold(each.detach()));
      expect(() => engines[1].forward(key, () => last.forward(idsOf(3)), received)).toThrow(
        "[pipeline] expected call 3 of a block to read only what it is given by the block before",
      );
    });
    for (const engine of engines) engine.dispose();
  });

  it("hold what they use, and share what both use", () => {
    const heldBy = (stage: number) =>
      planOf(new Model(), stage).layouts.map(({ name, group, parameters }) => [
        name,
        group,
        parameters.map((parameter) => parameter.name),
      ]);
    const tied = ["root (tied)", [0, 1], ["embed.weight"]];
    expect(heldBy(0)).toEqual([
      tied,
      ["root", [0], ["context.weight", "context.bias"]],
      ["layers.0", [0], ["layers.0.weight"]],
      ["layers.1", [0], ["layers.1.weight"]],
    ]);
    expect(heldBy(1)).toEqual([
      ["root", [1], ["norm"]],
      tied,
      ["layers.2", [1], ["layers.2.weight"]],
      ["layers.3", [1], ["layers.3.weight"]],
    ]);
  });
});

function compare(
  got: ReadonlyMap<string, number[]>,
  expected: ReadonlyMap<string, number[]>,
  digits: number,
): void {
  expect([...got.keys()].toSorted()).toEqual([...expected.keys()].toSorted());
  for (const [name, values] of expected) {
    for (const [index, value] of (got.get(name) ?? []).entries())
      expect(value, name).toBeCloseTo(values[index] ?? Number.NaN, digits);
  }
}
