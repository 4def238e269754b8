// Blocks as fast programs: calls that a model's own blocks seldom make.
import { describe, expect, it } from "vitest";
import { Dropout, LayerNorm, Linear, Module } from "../../src/compute/nn/index.ts";
import { hasTileProducts, ops, type Tensor } from "../../src/compute/tensor/index.ts";
import { type Choices, type Layer, trainStack } from "./train-stack.ts";

const width = 64;

/** Large enough for tiles. */
const sizes = { dtype: "bfloat16", width, rows: Array(5).fill(96) } as const;

class FeedForward extends Module {
  readonly wide = new Linear(width, 4 * width, { activation: "gelu_new" });
  readonly narrow = new Linear(4 * width, width);
  forward(x: Tensor): Tensor {
    return this.narrow.forward(this.wide.forward(x));
  }
}

class Block extends Module {
  readonly norm = new LayerNorm(width);
  readonly mlp = new FeedForward();
  forward(x: Tensor): Tensor {
    return x.add(this.mlp.forward(this.norm.forward(x)));
  }
}

/** The numbers of each line of a run: losses and blocks' gradients. */
const numbersOf = (lines: readonly string[]) =>
  lines.map((line) => (line.split(" ").at(-1) as string).split(",").map(Number));

/**
 * Expects the numbers of single operators, but for roundings.
 * @param unrecorded - why blocks are issued singly in the end
 * @returns the programs' lines
 */
function expectAsSingly(
  layers: () => Layer[],
  choices: Omit<Choices, "programs">,
  unrecorded: readonly string[] = [],
): string {
  const singly = numbersOf(trainStack(layers, { ...sizes, ...choices, programs: false }).bits);
  const replayed = trainStack(layers, { ...sizes, ...choices, programs: true, fast: true });
  expect(replayed.unrecorded.map(({ reason }) => reason)).toEqual(unrecorded);
  const fast = numbersOf(replayed.bits);
  singly.forEach((line, index) => {
    // A block's gradients are rounded to bfloat16 some ten times on their way: within 2^-5 of the largest.
    const bound = Math.max(...line.map(Math.abs)) * 2 ** -5;
    const apart = line.map((number, place) => Math.abs(number - (fast[index]?.[place] as number)));
    expect(Math.max(...apart)).toBeLessThanOrEqual(bound);
  });
  return replayed.programs
    .flatMap(({ forward, backward }) => [...forward.operators, ...backward.operators])
    .join("\n");
}

describe("fast programs of blocks", () => {
  it("fuse what backward computes again of a part", () => {
    const lines = expectAsSingly(() => [new Block(), new Block()], { recompute: ["mlp"] });
    if (hasTileProducts()) expect(lines).toContain("gradient of bias and GELU");
  });

  it("leave the backward of a recomputed part's last dropout", () => {
    class Dropping extends FeedForward {
      readonly dropout = new Dropout(0.25);
      override forward(x: Tensor): Tensor {
        return this.dropout.forward(super.forward(x));
      }
    }
    class Drops extends Block {
      override readonly mlp = new Dropping();
    }
    for (const recompute of [["mlp"], true])
      expectAsSingly(() => [new Drops(), new Drops()], { recompute, microBatches: 2 });
  });

  it("walk a gradient twice that two arguments of a recomputed part lead to", () => {
    class Joins extends Module {
      forward(one: Tensor, other: Tensor): Tensor {
        return one.mul(other);
      }
    }
    class Shares extends Module {
      readonly wide = new Linear(width, 4 * width, { activation: "gelu_new" });
      readonly left = new Linear(4 * width, width);
      readonly right = new Linear(4 * width, width);
      readonly joins = new Joins();
      forward(x: Tensor): Tensor {
        const shared = this.wide.forward(x);
        return this.joins.forward(this.left.forward(shared), this.right.forward(shared)).add(x);
      }
    }
    expectAsSingly(() => [new Shares()], { recompute: ["joins"] });
  });

  it("multiply rows that share their memory", () => {
    class Sums extends Module {
      readonly wide = new Linear(width, width, { bias: false });
      readonly narrow = new Linear(width, width);
      forward(x: Tensor): Tensor {
        const sum = this.wide.forward(x).sum(0, true);
        return this.narrow.forward(ops.expand(sum, x.shape)).add(x);
      }
    }
    const lines = expectAsSingly(() => [new Sums()], { rows: Array(5).fill(512) });
    if (hasTileProducts()) expect(lines).toContain("product, bias, residual");
  });

  it("give way to single operators where a loss gives gradients of another layout", () => {
    const lossOf = (y: Tensor, step: number) => (step < 4 ? y.sum().mul(0.01) : y.square().mean());
    expectAsSingly(() => [new Block()], { lossOf, rows: Array(6).fill(96) }, [
      "gradients that lie in memory otherwise than recorded ones",
    ]);
  });
});
