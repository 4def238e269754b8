import { cpus } from "node:os";
import { describe, expect, it } from "vitest";
import { Dropout, joinHeads, LayerNorm, Linear, Module, splitHeads } from "../../src/compute/nn/index.ts";
import { describePlain } from "../../src/compute/parallel/tape/describe-plain.ts";
import {
  arange,
  beginRecording,
  endForward,
  grad,
  improveProgram,
  memory,
  nativeInfo,
  ones,
  ops,
  playBackward,
  playForwardAgain,
  recordBackward,
  resetPeakMemory,
  scope,
  type Tensor,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { type Choices, trainStack as train } from "./train-stack.ts";

const width = 8;

/** A layer that draws, splits, adds in place, and reads what is no argument. */
class Layer extends Module {
  readonly norm = new LayerNorm(width);
  readonly wide = new Linear(width, 4 * width, { activation: "gelu_new" });
  readonly narrow = new Linear(4 * width, width);
  readonly dropout = new Dropout(0.25);
  override forward(x: Tensor, mask?: Tensor): Tensor {
    const normed = this.norm.forward(x);
    const [left, right] = normed.chunk(2, -1) as [Tensor, Tensor];
    const gate = left.sigmoid().mul(right.tanh());
    const y = this.dropout.forward(this.narrow.forward(this.wide.forward(normed)));
    const z = y.mul(gate.sum(-1, true)).add(x, 0.5);
    return mask === undefined ? z : z.mul(mask);
  }
}

const twoLayers = () => [new Layer(), new Layer()];

/** Ways of training that are compared. */
const ways: readonly (readonly [string, Omit<Choices, "programs" | "device">])[] = [
  ["forward and backward", {}],
  ["recomputed blocks", { recompute: true }],
  ["several micro-batches under way", { microBatches: 3 }],
  ["parts of blocks recomputed, one of which draws", { recompute: ["wide", "dropout"], microBatches: 2 }],
  ["recomputed blocks of several micro-batches", { recompute: true, microBatches: 2 }],
  ["batches of other sizes", { rows: [3, 3, 3, 5, 5, 5, 3, 5, 2, 3] }],
  [
    "a setting that changes",
    {
      onStep: (step, model) => void (step % 2 === 0 ? model.train() : model.eval()),
      rows: Array(10).fill(3),
    },
  ],
];

describe("programs of blocks", () => {
  it.each(ways)("give the bits of single operators: %s", (_, choices) => {
    const singly = train(twoLayers, { ...choices, programs: false });
    const replayed = train(twoLayers, { ...choices, programs: true });
    expect(replayed.unrecorded).toEqual([]);
    expect(replayed.bits).toEqual(singly.bits);
  });

  it.each(ways)("give them on the pretend device: %s", (_, choices) => {
    const singly = train(twoLayers, { ...choices, programs: false });
    const replayed = train(twoLayers, { ...choices, programs: true, device: "sim:0" });
    expect(replayed.unrecorded).toEqual([]);
    expect(replayed.programs).not.toEqual([]);
    expect(replayed.bits).toEqual(singly.bits);
  });

  it("computes once what no call changes, and neighbours of elementwise operators in one pass", () => {
    class Mixed extends Layer {
      readonly scale = new LayerNorm(width);
      override forward(x: Tensor, mask?: Tensor): Tensor {
        const slope = arange(width).to("float32").mul(0.1).add(1);
        const weight = this.scale.weight.tensor;
        // A row, a number, the result twice, a value that backward reads, and a written constant.
        const mixed = x.mul(slope).add(weight).sub(0.25).div(3);
        const counts = zeros([width]).add_(weight.detach(), 0.125);
        const y = mixed.mul(mixed).neg().add(counts).mul(weight).sub(x);
        return super.forward(y, mask).add(slope);
      }
    }
    const layers = () => [new Mixed(), new Mixed()];
    const rows = [300, 300, 300, 300, 300];
    const replayed = train(layers, { programs: true, rows });
    expect(replayed.bits).toEqual(train(layers, { programs: false, rows }).bits);
    expect(replayed.unrecorded).toEqual([]);
    expect(replayed.programs).toHaveLength(1);
    const operators = replayed.programs[0]?.forward.operators ?? [];
    expect(operators.filter((line) => line.includes("arange"))).toEqual([]);
    expect(operators.filter((line) => line.includes("zeros"))).toHaveLength(1);
    expect(operators.join("\n")).toMatch(/= one pass of mul, add, sub, div\(/);
    const pretended = train(layers, { programs: true, rows, device: "sim:0" });
    expect(pretended.bits).toEqual(replayed.bits);
    expect(JSON.stringify(pretended.programs).replaceAll("sim:0", "cpu")).toBe(
      JSON.stringify(replayed.programs),
    );
  });

  it.each([
    ["heads of their own", 3, 32, 2],
    ["keys and values that heads share no copy of", 2, 32, 2],
    // Some are copied on AMD's processors, where tiles have fewer numbers in a row.
    ["more keys than MKL adds up at once", 3, 400, 8],
  ])("read and write heads where they lie, with the same bits: %s", (_, parts, length, mostCopies) => {
    const [heads, headWidth] = [2, 16];
    class Attending extends Module {
      readonly wide = new Linear(width, parts * heads * headWidth);
      readonly narrow = new Linear(heads * headWidth, width);
      readonly dropout = new Dropout(0.25);
      override forward(x: Tensor): Tensor {
        const projected = this.wide.forward(x).view([-1, length, parts * heads * headWidth]);
        const all = projected.chunk(parts, 2).map((part) => splitHeads(part, headWidth));
        const [q, k, v = k] = all as [Tensor, Tensor, Tensor?];
        const scores = q.matmul(k.transpose(2, 3)).mul(0.25).softmax(-1);
        const mixed = joinHeads(this.dropout.forward(scores).matmul(v));
        return this.narrow.forward(mixed).view([-1, width]).add(x);
      }
    }
    const layers = () => [new Attending(), new Attending()];
    const rows = [2, 2, 2, 2, 3, 3, 3].map((sequences) => sequences * length);
    const replayed = train(layers, { programs: true, rows });
    expect(replayed.unrecorded).toEqual([]);
    expect(replayed.bits).toEqual(train(layers, { programs: false, rows }).bits);
    const [program] = replayed.programs;
    const lines = [...(program?.forward.operators ?? []), ...(program?.backward.operators ?? [])];
    const inTiles = lines.filter((line) => line.includes("products of heads"));
    // Elsewhere heads are copied, and multiplied by libtorch.
    const { capability } = nativeInfo();
    const isAmd = cpus()[0]?.model.includes("AMD") ?? false;
    const hasTiles = capability === "avx2" ? isAmd : capability !== "scalar";
    expect(inTiles.length > 0).toBe(hasTiles);
    if (!hasTiles) expect(lines.filter((line) => line.includes("aten::bmm"))).toHaveLength(6);
    else expect(lines.filter((line) => line.includes("aten::clone")).length).toBeLessThanOrEqual(mostCopies);
  });

  it("compute again only what backward needs", () => {
    const [rows, columns] = [512, 2048];
    scope(() => {
      const x = arange(rows).to("float32").view([rows, 1]).div(rows).requiresGrad_();
      const recording = beginRecording([x], []);
      const y = x.sigmoid().mul(2).expand([rows, columns]).contiguous();
      expect(endForward(recording, [y], [])).toBe("");
      const upstream = ones([rows, columns]);
      const { gradients, program } = recordBackward(recording, [upstream], () => grad([y], [x], [upstream]));
      if (typeof program !== "number") throw new Error(`${program}`);
      improveProgram(program);
      resetPeakMemory();
      const before = memory().totalBytes;
      const call = playForwardAgain(program, [x], []);
      expect(memory().peakBytes - before).toBeLessThan(4 * rows * columns);
      const again = playBackward(call, [upstream], 1)?.[0] as Tensor;
      expect(again.toTypedArray()).toEqual(gradients[0]?.toTypedArray());
    });
  });

  it("give the gradient of a bias that the block computes for its attention", () => {
    class Attends extends Layer {
      override forward(x: Tensor, mask?: Tensor): Tensor {
        const heads = x.view([1, 1, ...x.shape]);
        const rows = x.shape[0] ?? 0;
        const bias = this.norm.weight.tensor.mul(2).narrow(0, 0, rows).view([1, 1, 1, rows]);
        const y = ops.troupe.maskedAttention(heads, heads, heads, undefined, bias, true, 0, 0.3);
        return super.forward(y.view(x.shape), mask);
      }
    }
    const layers = () => [new Attends()];
    const singly = train(layers, { programs: false });
    for (const device of ["cpu", "sim:0"] as const) {
      const replayed = train(layers, { programs: true, device });
      expect(replayed.unrecorded).toEqual([]);
      expect(replayed.bits).toEqual(singly.bits);
    }
  });

  it("leaves a block alone that reads a value, and names its line", () => {
    class Reads extends Layer {
      override forward(x: Tensor, mask?: Tensor): Tensor {
        return super.forward(x.mul(x.sum().item() > 0 ? 1 : 2), mask);
      }
    }
    const layers = () => [new Reads()];
    const replayed = train(layers, { programs: true });
    expect(replayed.bits).toEqual(train(layers, { programs: false }).bits);
    expect(replayed.unrecorded).toHaveLength(1);
    const [unrecorded] = replayed.unrecorded;
    expect(unrecorded).toMatchObject({ block: "layers.0", reason: "a value that is read between operators" });
    expect(unrecorded?.line).toMatch(/programs\.test\.ts:\d+:\d+$/);
  });

  it("tell functions and texts apart that look alike", () => {
    const times = (factor: number) => (x: Tensor) => x.mul(factor);
    class Bends extends Layer {
      bend = times(2);
      override forward(x: Tensor, mask?: Tensor): Tensor {
        return this.bend(super.forward(x, mask));
      }
    }
    const layers = () => [new Bends(), new Bends()];
    const functions = [times(2), times(3)];
    const onStep = (step: number, model: Module) => {
      for (const module of model.namedModules().values())
        if (module instanceof Bends) module.bend = functions[step % 2] ?? times(2);
    };
    const rows = Array(10).fill(3);
    const replayed = train(layers, { programs: true, rows, onStep });
    expect(replayed.unrecorded).toEqual([]);
    expect(replayed.bits).toEqual(train(layers, { programs: false, rows, onStep }).bits);
    const texts = [["a,1:string b"], ["a", "b"], [0], [-0], [null], ["null"]].map((value) =>
      describePlain(value, []),
    );
    expect(new Set(texts).size).toBe(texts.length);
  });

  it("leaves a block alone whose numbers change from call to call", () => {
    let calls = 0;
    class Counts extends Layer {
      override forward(x: Tensor, mask?: Tensor): Tensor {
        return super.forward(x, mask).mul(++calls);
      }
    }
    const layers = () => {
      calls = 0;
      return [new Counts()];
    };
    const replayed = train(layers, { programs: true });
    expect(replayed.unrecorded).toMatchObject([
      { block: "layers.0", reason: expect.stringMatching(/^two calls that differ: aten::mul/) },
    ]);
    expect(replayed.bits).toEqual(train(layers, { programs: false }).bits);
  });

  it.each([false, true])("keep tensors that a block makes of numbers, unless they change: %s", (changes) => {
    let calls = 0;
    class Weighs extends Layer {
      override forward(x: Tensor, mask?: Tensor): Tensor {
        calls += Number(changes);
        const weights = tensor(Float32Array.from({ length: width }, (_, index) => index + calls));
        return super.forward(x.mul(weights.neg().exp()), mask);
      }
    }
    const layers = () => {
      calls = 0;
      return [new Weighs()];
    };
    const replayed = train(layers, { programs: true });
    expect(replayed.bits).toEqual(train(layers, { programs: false }).bits);
    const reasons = replayed.unrecorded.map(({ reason }) => reason);
    expect(reasons).toEqual(changes ? ["two calls that differ: a tensor made of other numbers"] : []);
  });

  it("leaves a block alone whose calls are of ever other kinds", () => {
    // Six kinds of calls, one after the other: of four programs none is there when its kind comes again.
    const rows = Array.from({ length: 40 }, (_, step) => 1 + (step % 6));
    const replayed = train(twoLayers, { programs: true, rows });
    const reason = "32 programs dropped in a row before they were used: its calls differ too much";
    expect(replayed.unrecorded.map((block) => block.reason)).toEqual([reason, reason]);
    expect(replayed.bits).toEqual(train(twoLayers, { programs: false, rows }).bits);
  });

  it("leaves a block alone that reads a tensor from elsewhere", () => {
    let held: Tensor | undefined;
    class Closes extends Layer {
      override forward(x: Tensor, mask?: Tensor): Tensor {
        return super.forward(held === undefined ? x : x.mul(held), mask);
      }
    }
    const onStep = (step: number) => {
      held = tensor(Float32Array.of(step + 1));
    };
    const layers = () => [new Closes()];
    const replayed = train(layers, { programs: true, onStep });
    expect(replayed.unrecorded).toMatchObject([
      { reason: expect.stringContaining("was not given and did not compute") },
    ]);
    expect(replayed.bits).toEqual(train(layers, { programs: false, onStep }).bits);
  });
});
