// Runs an optimizer over slices of one block, as the shards of several ranks do, but in one thread and in lockstep.
import { fromValues, type ParameterSpec } from "../../src/compute/nn/index.ts";
import { type OptimizerSpec, updateRuleOf } from "../../src/compute/optim/index.ts";
import {
  BlockState,
  type FlatBlock,
  layoutBlock,
  replicas,
  sliceOf,
} from "../../src/compute/parallel/index.ts";
import { type DType, hold, scope, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";

/** Values of parameters by name. */
export type Values = Readonly<Record<string, number[]>>;

/** Shapes of the parameters by name, with their first values. */
export type Shapes = Readonly<
  Record<string, { readonly shape: readonly number[]; readonly values: number[] }>
>;

export interface ShardedOptions {
  readonly numRanks: number;
  readonly gradients: readonly Values[];
  readonly learningRate?: number;
  /** Dtype of the low-precision copy. */
  readonly dtype?: DType;
  readonly gradientDtype?: DType;
  /** Gradients come multiplied by it. */
  readonly lossScale?: number;
}

export interface Sharded {
  /** After each step. */
  readonly values: readonly Values[];
  /** The low-precision copy after each step, as numbers; the values if there is none. */
  readonly narrow: readonly Values[];
  /** `<kind>.<parameter>`, as a checkpoint would have it. */
  readonly state: Values;
}

/** Names with shapes, as an optimizer takes them. */
export function named(shapes: Shapes): [string, { shape: readonly number[] }][] {
  return Object.entries(shapes).map(([name, { shape }]) => [name, { shape }]);
}

export function shardedSteps(
  specs: OptimizerSpec | readonly OptimizerSpec[],
  shapes: Shapes,
  options: ShardedOptions,
): Sharded {
  const { numRanks, gradients, dtype = "float32", lossScale = 1 } = options;
  const list = "kind" in specs ? [specs] : specs;
  const parameters = Object.entries(shapes).map(
    ([name, { shape, values }]): ParameterSpec => ({
      name,
      shape,
      dtype: "float32",
      init: fromValues(values),
    }),
  );
  const layout = layoutBlock(0, "block", 3, parameters, replicas(numRanks));
  const owned: Tensor[] = [];
  const states = Array.from({ length: numRanks }, (_, rank) => {
    const slice = hold(() => zeros([layout.sliceNumel], { dtype }));
    owned.push(slice);
    const state = new BlockState(layout, rank, list.map(updateRuleOf), slice);
    state.bind(state.layouts.map(({ numel }) => hold(() => zeros([numel]))));
    state.initialize(1);
    return state;
  });
  const learningRates = list.flatMap(({ lr, groups }) =>
    groups.map(({ lrFactor }) => (options.learningRate ?? lr) * lrFactor),
  );
  const values: Values[] = [];
  const narrow: Values[] = [];
  gradients.forEach((gradient, index) => {
    const flat = flatten(layout, gradient, lossScale);
    const updates = states.map((state, rank) => {
      const { begin, end } = sliceOf(layout, rank);
      const slice = hold(() => tensor(flat.slice(begin, end)).to(options.gradientDtype ?? "float32"));
      return state.update(slice, { updateIndex: index + 1, learningRates, gradientScale: 1 / lossScale });
    });
    lockstep(updates);
    values.push(collect(states, "master"));
    narrow.push(unflatten(layout, owned));
  });
  const state = Object.fromEntries(
    states[0] === undefined
      ? []
      : kindsOf(states).flatMap((kind) => Object.entries(collect(states, kind, `${kind}.`))),
  );
  for (const each of states) each.dispose();
  return { values, narrow, state };
}

/** Every rank makes one turn, then all are given what all have yielded. */
function lockstep(updates: readonly Generator<Tensor, void, readonly Tensor[]>[]): void {
  for (let answer: readonly Tensor[] = []; ; ) {
    const turns = updates.map((update) => update.next(answer));
    for (const share of answer) share.dispose();
    if (turns.every(({ done }) => done)) return;
    if (turns.some(({ done }) => done)) throw new Error("ranks yield unequally often");
    answer = turns.map(({ value }) => value as Tensor);
  }
}

function flatten(layout: FlatBlock, values: Values, factor: number): Float32Array {
  const flat = new Float32Array(layout.numel);
  for (const { name, offset } of layout.parameters) {
    (values[name] ?? []).forEach((value, index) => {
      flat[offset + index] = value * factor;
    });
  }
  return flat;
}

function unflatten(layout: FlatBlock, slices: readonly Tensor[]): Values {
  const flat = slices.flatMap((slice) =>
    scope(() => Array.from(slice.to("float32").toTypedArray() as Float32Array)),
  );
  return Object.fromEntries(
    layout.parameters.map(({ name, offset, numel }) => [name, flat.slice(offset, offset + numel)]),
  );
}

function kindsOf(states: readonly BlockState[]): string[] {
  return [...new Set(states.flatMap((state) => state.tensors.map(({ kind }) => kind)))].filter(
    (kind) => kind !== "master",
  );
}

function collect(states: readonly BlockState[], kind: string, prefix = ""): Values {
  const values: Record<string, number[]> = {};
  for (const state of states) {
    for (const kept of state.tensors.filter((one) => one.kind === kind)) {
      const flat = Array.from(kept.tensor.toTypedArray() as Float32Array);
      for (const { parameter, parameterBegin, rangeBegin, numel } of kept.pieces) {
        const whole = values[prefix + parameter.name] ?? [];
        values[prefix + parameter.name] = whole;
        flat.slice(rangeBegin, rangeBegin + numel).forEach((value, index) => {
          whole[parameterBegin + index] = value;
        });
      }
    }
  }
  return values;
}
