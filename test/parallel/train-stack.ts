import {
  bindRandomness,
  Linear,
  Module,
  ModuleList,
  materialize,
  Randomness,
} from "../../src/compute/nn/index.ts";
import {
  type BlockEngine,
  Mesh,
  planBlocks,
  type Recompute,
  type RecordedProgram,
  type Unrecorded,
} from "../../src/compute/parallel/index.ts";
import { type Device, full, onDevice, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { readyEngine } from "./ready-engine.ts";

/** The results of a model's steps: loss and all gradients, bit by bit. */
export interface Steps {
  readonly bits: string[];
  readonly unrecorded: readonly Unrecorded[];
  readonly programs: readonly RecordedProgram[];
}

/** A block of the stack. */
export type Layer = Module & { forward(x: Tensor, mask?: Tensor): Tensor };

class Stack extends Module {
  readonly first: Linear;
  readonly layers: ModuleList<Layer>;
  readonly #lossOf: (y: Tensor) => Tensor;
  constructor(layers: Layer[], width: number, lossOf: (y: Tensor) => Tensor) {
    super();
    this.first = new Linear(width, width);
    this.#lossOf = lossOf;
    this.layers = new ModuleList(layers);
  }
  override forward(x: Tensor, mask?: Tensor): Tensor {
    let y = this.first.forward(x);
    for (const layer of this.layers) y = mask === undefined ? layer.forward(y) : layer.forward(y, mask);
    return this.#lossOf(y);
  }
}

/** How a stack is trained. */
export interface Choices {
  readonly programs: boolean;
  /** Whether programs may have other bits. Default: false. */
  readonly fast?: boolean;
  /** The dtype of parameters and activations. Default: float32. */
  readonly dtype?: "float32" | "bfloat16";
  /** Features of a row. Default: 8. */
  readonly width?: number;
  /** The loss of a step. Default: the mean of the results' squares. */
  readonly lossOf?: (y: Tensor, step: number) => Tensor;
  readonly recompute?: Recompute;
  /** Rows of each step's batch. */
  readonly rows?: readonly number[];
  readonly microBatches?: number;
  /** Where it computes. Default: the host. */
  readonly device?: Device;
  readonly onStep?: (step: number, model: Module) => void;
}

/** Trains a linear map and `layers`, one block each, behind it. */
export function trainStack(layers: () => Layer[], choices: Choices): Steps {
  return onDevice(choices.device ?? "cpu", () => trainHere(layers, choices));
}

function trainHere(layers: () => Layer[], choices: Choices): Steps {
  const { programs, recompute = false, rows = [3, 3, 3, 3, 3], microBatches = 1, onStep } = choices;
  const { fast = false, dtype = "float32", width = 8, lossOf = (y) => y.square().mean() } = choices;
  let present = 0;
  const model = new Stack(layers(), width, (y) => lossOf(y, present));
  materialize(model, { seed: 3 });
  const randomness = new Randomness(7);
  bindRandomness(model, randomness);
  const values = new Map([...model.namedParameters()].map(([name, parameter]) => [name, parameter.tensor]));
  const bits: string[] = [];
  const plan = planBlocks(model, { zero: 3, mesh: new Mesh({}), rank: 0, recompute });
  const engine: BlockEngine<number> = readyEngine(plan, {
    values,
    randomness,
    programs,
    fast,
    dtype,
    onReduced: (block, gradients) =>
      bits.push(`${block} ${[...gradients.values()].map((each) => each.join())}`),
  });
  rows.forEach((count, step) => {
    present = step;
    onStep?.(step, model);
    randomness.step = step;
    engine.begin("step");
    scope(() => {
      const x = tensor(
        Float32Array.from({ length: count * width }, (_, index) => Math.sin(index + step)),
        { shape: [count, width] },
      ).to(dtype);
      const mask = tensor(
        Float32Array.from({ length: count }, (_, index) => (index + step) % 2),
        { shape: [count, 1] },
      ).to(dtype);
      // All forwards first, as a pipeline's warm-up has them.
      for (let microBatch = 0; microBatch < microBatches; microBatch++) {
        randomness.microBatch = microBatch;
        const loss = engine.forward({ microBatch, chunk: 0 }, () => model.forward(x, mask)).result as Tensor;
        bits.push(`${loss.item()}`);
      }
      for (let microBatch = 0; microBatch < microBatches; microBatch++) {
        randomness.microBatch = microBatch;
        const last = microBatch === microBatches - 1;
        engine.backward({ microBatch, chunk: 0 }, [full([], 1)], { chunk: last, step: last });
      }
    });
  });
  const unrecorded = engine.takeUnrecorded();
  const recorded = engine.takePrograms();
  engine.dispose();
  return { bits, unrecorded, programs: recorded };
}
