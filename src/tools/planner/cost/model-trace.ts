import { openCommunicator } from "../../../compute/collectives/index.ts";
import * as nn from "../../../compute/nn/index.ts";
import { BlockTape, mapTensors, tensorParallel } from "../../../compute/parallel/index.ts";
import {
  type AutocastDType,
  autocast,
  type DType,
  full,
  hold,
  itemBytes,
  type Meter,
  type Metered,
  type MeteredDevice,
  metered,
  ops,
  scope,
  type Tensor,
} from "../../../compute/tensor/index.ts";

/** A model and its loss, for the planner. */
export interface PlannedModel {
  /** Declares a new copy of the model, without memory. */
  build(): nn.Module;
  /** Its plan for tensor parallelism; undefined where it has none. */
  readonly tensorPlan: nn.TensorPlan | undefined;
  /** The loss of `numSamples` samples, a scalar, whatever the model's parameters are bound to; called in a scope. */
  loss(model: nn.Module, numSamples: number): Tensor;
  /** Size of a batch of `numSamples` samples. */
  batchBytes(numSamples: number): number;
  /** A number of samples for which the loss can be computed. */
  readonly someSamples: number;
  /** Per sample, if the model has tokens. */
  readonly tokensPerSample: number | undefined;
}

/** How a rank computes a micro-batch. */
export interface TraceOptions {
  readonly numSamples: number;
  /** Dtype of the parameters. */
  readonly dtype: DType;
  /** Dtype that autocast uses in forward; undefined without autocast. */
  readonly autocast: AutocastDType | undefined;
  /** Number of ranks that split a layer. */
  readonly tp: number;
  /** Whether activations between the split parts of a layer are split too, along the sequence. */
  readonly sequenceParallel: boolean;
  /** Whether blocks keep only their input and are recomputed in backward. */
  readonly recompute: boolean;
  /** The device whose kernels are counted. */
  readonly device: MeteredDevice;
}

/** Work in a section of a pass. */
export interface Work {
  readonly flops: number;
  /** FLOPs with 16-bit operands, among these. */
  readonly narrowFlops: number;
  /** Bytes of all tensors made, by size: index `i` is for those of more than 2^(i − 1) and at most 2^i bytes. */
  readonly madeBytes: readonly number[];
  /** Bytes sent around the tensor-parallel ranks (an all-reduce counts twice), and the number of such collectives. */
  readonly ringBytes: number;
  readonly numRings: number;
}

/** A call of a block, including computation since the call before; or the end of the model, after the last. */
export interface TracedCall {
  /** Index of the block in the model; undefined for the end. */
  readonly block: number | undefined;
  readonly forward: Work;
  readonly backward: Work;
  /** Bytes kept from its forward to its backward. */
  readonly keptBytes: number;
  /** Bytes of its input: received from the stage before, if a stage begins here. */
  readonly enteringBytes: number;
  /** Peak of its forward, besides what it and earlier calls keep. */
  readonly forwardBytes: number;
  /** Peak of its backward, including its parameters' gradients. */
  readonly backwardBytes: number;
  /** Peak while its gradients are handed on. */
  readonly handOnBytes: number;
}

/** The work and memory of one micro-batch, call by call in forward's order, the end of the model last. */
export interface ModelTrace {
  readonly calls: readonly TracedCall[];
  readonly batchBytes: number;
  /** Operators without a memory rule; all of their inputs and outputs count as kept. */
  readonly unruled: readonly string[];
}

const DEADLINE_MS = 60_000;
let numTraces = 0;

/**
 * Runs a model forward and backward once, on tensors without memory, like a rank's block engine, and counts what every
 * call of a block makes, keeps and releases. Nothing is computed: the time depends only on the operators' shape rules,
 * not on the model's size.
 * @throws {TroupeError} errors of the model or its tensor plan
 */
export function traceModel(planned: PlannedModel, options: TraceOptions): ModelTrace {
  const model = planned.build();
  nn.bindRandomness(model, new nn.Randomness(0));
  // Tensors without memory take part in no collective, so no peers are needed.
  const group = openCommunicator({
    backend: "local",
    name: `trace ${numTraces++}`,
    rank: 0,
    size: options.tp,
    deadlineMs: DEADLINE_MS,
  });
  try {
    const plan = planned.tensorPlan ?? {};
    const region = tensorParallel(model, plan, group, {
      sequenceParallel: options.sequenceParallel && options.tp > 1,
    });
    const padded = (run: (...args: unknown[]) => unknown) => region?.paddedOnce(run) ?? run;
    return scope(() =>
      metered(options.device, (meter) => {
        const recorder = new Recorder(model, meter, options, padded);
        for (const buffer of model.namedBuffers().values()) bindBuffer(buffer);
        const loss = () => autocast(options.autocast, () => planned.loss(model, options.numSamples));
        const calls = recorder.trace(loss);
        const { unruled } = meter.read();
        return { calls, batchBytes: planned.batchBytes(options.numSamples), unruled };
      }),
    );
  } finally {
    group.close();
  }
}

/** Counts of a call so far. */
interface Count {
  readonly block: number | undefined;
  readonly enteringBytes: number;
  readonly forward: Work;
  readonly keptBytes: number;
  /** Bytes that all calls up to this one held when its forward had ended, and the peak by then. */
  readonly heldBytes: number;
  readonly forwardPeakBytes: number;
  backward: Work;
  backwardPeakBytes: number;
  handedOnBytes: number;
}

/** The root's index among the tape's blocks; those of the model follow. */
const ROOT = 0;

/** Reads a meter during one forward and backward. */
class Recorder {
  readonly #meter: Meter;
  readonly #tape: BlockTape;
  readonly #counts: Count[] = [];
  #since: Metered;
  /** Index of the call whose backward runs. */
  #walked = 0;
  /** Whether its own backward has begun. */
  #isInside = false;

  constructor(
    model: nn.Module,
    meter: Meter,
    { dtype, autocast: cast, recompute }: TraceOptions,
    once: (run: (...args: unknown[]) => unknown) => (...args: unknown[]) => unknown,
  ) {
    const { blocks, rest } = nn.cutBlocks(model);
    this.#meter = meter;
    const leaves = [rest, ...blocks.map(({ parameters }) => parameters)].map((unit) =>
      bindShapes(unit.values(), dtype),
    );
    this.#tape = new BlockTape(this.#hooks(new Set(leaves.flat())), ROOT, (unit) => leaves[unit] ?? []);
    for (const [position, { module }] of blocks.entries())
      nn.wrapForward(module, (inner, inputs) => {
        // Backward, which may run it again, casts nothing.
        const run = once((...args) =>
          autocast(cast, () => (inner as (...args: unknown[]) => unknown)(...args)),
        );
        const result = this.#tape.call(position + 1, run, inputs, { recompute });
        this.#close(position, inputs);
        return result as never;
      });
    meter.resetPeak();
    this.#since = meter.read();
  }

  trace(loss: () => Tensor): TracedCall[] {
    const root = loss();
    this.#close(undefined, []);
    this.#walked = this.#counts.length - 1;
    this.#tape.backward([root]);
    this.#count();
    return this.#counts.map(
      ({ heldBytes, forwardPeakBytes, backwardPeakBytes, handedOnBytes, ...call }): TracedCall => ({
        ...call,
        forwardBytes: forwardPeakBytes - heldBytes,
        backwardBytes: Math.max(0, backwardPeakBytes - heldBytes),
        handOnBytes: Math.max(0, handedOnBytes - heldBytes),
      }),
    );
  }

  #hooks(parameters: ReadonlySet<Tensor>) {
    return {
      need: (unit: number) => {
        if (unit !== ROOT && this.#counts.at(-1)?.block === undefined && this.#counts.length > 0)
          this.#enter();
      },
      release: () => {},
      contribute: (unit: number) => {
        if (unit === ROOT) return;
        if (!this.#isInside) this.#enter(); // no gradient came to it
        this.#count();
        (this.#counts[this.#walked] as Count).handedOnBytes = this.#since.liveBytes;
        this.#isInside = false;
      },
      complete: () => {},
      isParameter: (tensor: Tensor) => parameters.has(tensor),
      name: (unit: number) => `${unit}`,
    };
  }

  /** Ends a section of forward. */
  #close(block: number | undefined, inputs: readonly unknown[]): void {
    const [before, after] = this.#next();
    this.#counts.push({
      block,
      enteringBytes: bytesOf(inputs),
      forward: workBetween(before, after),
      keptBytes: after.liveBytes - before.liveBytes,
      heldBytes: after.liveBytes,
      forwardPeakBytes: after.peakBytes,
      backward: NO_WORK,
      backwardPeakBytes: 0,
      handedOnBytes: 0,
    });
  }

  /** Backward reaches the call before: everything so far belongs to the later one. */
  #enter(): void {
    this.#count();
    this.#walked -= 1;
    this.#isInside = true;
  }

  #count(): void {
    const [before, after] = this.#next();
    const count = this.#counts[this.#walked] as Count;
    count.backward = sumOfWork(count.backward, workBetween(before, after));
    count.backwardPeakBytes = Math.max(count.backwardPeakBytes, after.peakBytes);
  }

  /** Returns the meter's values at the last call of this function, and now. */
  #next(): [Metered, Metered] {
    const before = this.#since;
    this.#since = this.#meter.read();
    this.#meter.resetPeak();
    return [before, this.#since];
  }
}

/** Binds parameters to tensors without memory. @returns those that are trained */
function bindShapes(parameters: Iterable<nn.Parameter>, dtype: DType): Tensor[] {
  const leaves: Tensor[] = [];
  for (const parameter of parameters) {
    const own = parameter.dtype === "float32" ? dtype : parameter.dtype;
    const tensor = hold(ops.troupe.placeholder(parameter.shape, own));
    parameter.bind(parameter.trainable ? tensor.requiresGrad_() : tensor);
    if (parameter.trainable) leaves.push(tensor);
  }
  return leaves;
}

/** Binds a buffer, unless it is persistent: then it is bound with the state. */
function bindBuffer(buffer: nn.Parameter & { readonly persistent?: boolean }): void {
  if (buffer.persistent !== true) buffer.bind(hold(ops.troupe.placeholder(buffer.shape, buffer.dtype)));
}

function bytesOf(args: readonly unknown[]): number {
  let bytes = 0;
  mapTensors(args, (tensor) => {
    bytes += tensor.numel * itemBytes(tensor.dtype);
    return tensor;
  });
  return bytes;
}

function workBetween(before: Metered, after: Metered): Work {
  return {
    flops: after.flops - before.flops,
    narrowFlops: after.narrowFlops - before.narrowFlops,
    madeBytes: after.madeBytes.map((bytes, size) => bytes - (before.madeBytes[size] ?? 0)),
    ringBytes: after.ringBytes - before.ringBytes,
    numRings: after.numRings - before.numRings,
  };
}

/** No work. */
export const NO_WORK: Work = { flops: 0, narrowFlops: 0, madeBytes: [], ringBytes: 0, numRings: 0 };

/** Adds `times` times the other's work. */
export function sumOfWork(one: Work, other: Work, times = 1): Work {
  const longest = Math.max(one.madeBytes.length, other.madeBytes.length);
  return {
    flops: one.flops + times * other.flops,
    narrowFlops: one.narrowFlops + times * other.narrowFlops,
    madeBytes: Array.from(
      { length: longest },
      (_, size) => (one.madeBytes[size] ?? 0) + times * (other.madeBytes[size] ?? 0),
    ),
    ringBytes: one.ringBytes + times * other.ringBytes,
    numRings: one.numRings + times * other.numRings,
  };
}

/** A model that learns to tell the next token of a text. */
export interface TextModel extends nn.Module {
  readonly tensorPlan?: nn.TensorPlan;
  forward(batch: { readonly inputIds: Tensor; readonly labels: Tensor }): { readonly loss?: Tensor };
}

/** A language model as the planner sees it, on texts of `length` positions, declared by `build`. */
export function languageModel(build: () => TextModel, length: number): PlannedModel {
  return {
    build,
    tensorPlan: build().tensorPlan,
    loss: (model, numSamples) => {
      const ids = full([numSamples, length], 0, { dtype: "int64" });
      return (model as TextModel).forward({ inputIds: ids, labels: ids }).loss as Tensor;
    },
    batchBytes: (numSamples) => 2 * numSamples * length * BigInt64Array.BYTES_PER_ELEMENT,
    someSamples: 1,
    tokensPerSample: length,
  };
}
