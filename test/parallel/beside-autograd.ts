import { expect } from "vitest";
import { Module, materialize, normal, Parameter } from "../../src/compute/nn/index.ts";
import { type BlockPlan, Mesh, planBlocks } from "../../src/compute/parallel/index.ts";
import { backward, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { forwardBackward } from "../fixtures/forward-backward.ts";
import { readyEngine } from "./ready-engine.ts";

/** Features of what the blocks are given. */
export const width = 4;

/** A block that reads a second tensor too. */
export class Mix extends Module {
  weight = new Parameter([width, width], normal(0, 0.5));
  override forward(x: Tensor, other?: Tensor): Tensor {
    const y = x.matmul(this.weight.tensor).tanh();
    return other === undefined ? y : y.add(other);
  }
}

/** A model's blocks, all on one rank. */
export function planOf(model: Module): BlockPlan {
  return planBlocks(model, { zero: 3, mesh: new Mesh({}), rank: 0 });
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

/** The results of a step through the engine. */
export interface ByEngine {
  readonly gradients: Map<string, number[]>;
  /** Blocks in the order in which their gradients became complete. */
  readonly complete: string[];
}

/** The same through the engine. */
function byEngine(model: Module, lossOf: (x: Tensor) => Tensor, x: Tensor): ByEngine {
  const gradients = new Map<string, number[]>();
  const complete: string[] = [];
  const values = new Map([...model.namedParameters()].map(([name, parameter]) => [name, parameter.tensor]));
  const engine = readyEngine(planOf(model), {
    dtype: "float64",
    values,
    onReduced: (block, ofBlock) => {
      complete.push(block);
      for (const [name, gradient] of ofBlock) gradients.set(name, gradient);
    },
  });
  engine.begin("step");
  forwardBackward(engine, () => lossOf(x));
  engine.dispose();
  return { gradients, complete };
}

/**
 * Computes a model's loss and gradients by plain autograd and through an engine, and expects them to be the same.
 * @returns what the engine came to
 */
export function compare(model: Module & { lossOf(x: Tensor): Tensor }): ByEngine {
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
