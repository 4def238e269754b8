import * as nn from "../../compute/nn/index.ts";
import {
  type DType,
  hold,
  ops,
  type Tensor,
  type TracedArgument,
  type TracedCall,
  type TracedTensor,
  type TypedArray,
  traceOperators,
} from "../../compute/tensor/index.ts";
import { exportError } from "./export-error.ts";
import { fitSize, type Size, type SizeSymbol, sizeOf } from "./sizes.ts";

/** An input of a forward that is exported. */
export interface ExportInput {
  /** Sizes; a name stands for a size that may differ from call to call. */
  readonly shape: readonly (number | string)[];
  /** Default: float32. */
  readonly dtype?: DType;
}

/** A tensor of a recorded forward. */
export interface GraphTensor {
  readonly id: number;
  readonly shape: readonly Size[];
  readonly dtype: DType;
}

/** An argument of an operator whose numbers may be expressions of sizes. */
export type GraphArgument =
  | Size
  | string
  | GraphTensor
  | readonly (Size | GraphTensor | undefined)[]
  | undefined;

/** One call of an operator. */
export interface GraphCall {
  readonly operator: string;
  readonly arguments: Readonly<Record<string, GraphArgument>>;
  readonly results: readonly GraphTensor[];
  /** Name of the innermost module that called it; empty for the model itself. */
  readonly module: string;
}

/** A tensor that the forward reads and no operator makes. */
export type GraphSource =
  | { readonly kind: "input"; readonly name: string; readonly tensor: GraphTensor }
  | { readonly kind: "parameter"; readonly name: string; readonly tensor: GraphTensor }
  | { readonly kind: "constant"; readonly values: TypedArray; readonly tensor: GraphTensor };

/** The operators that a forward calls, for all sizes of its inputs. */
export interface RecordedForward {
  readonly sources: readonly GraphSource[];
  readonly calls: readonly GraphCall[];
  readonly outputs: readonly { readonly name: string; readonly tensor: GraphTensor }[];
  /** Symbols that are no input's size, with the dim of the result that has it. */
  readonly derived: ReadonlyMap<string, { readonly id: number; readonly dim: number }>;
}

/** Inputs and outputs of a forward, by name. */
export interface ForwardSpec {
  readonly inputs: Readonly<Record<string, ExportInput>>;
  /** Sizes that are the sum of two others: `total` is `past` + `length`. Default: none. */
  readonly sums?: Readonly<Record<string, readonly [string, string]>>;
  /** Runs the model. Tensors have no memory: their values cannot be read. @returns outputs by name */
  run(inputs: Readonly<Record<string, Tensor>>): Readonly<Record<string, Tensor>>;
}

/**
 * The sizes that a symbol has in each trace, for the first symbol, the second, …: small, since models have a longest text, and
 * unlike each other, so that two expressions do not have the same values.
 */
const SIZES: readonly (readonly number[])[] = [
  [3, 5, 2, 7, 11, 4],
  [7, 2, 13, 5, 3, 10],
  [11, 13, 4, 3, 8, 6],
  [5, 9, 7, 12, 2, 13],
  [2, 6, 11, 9, 7, 3],
];

const NUM_TRACES = 6;

/**
 * Records the operators that a forward calls, without computing anything: parameters and inputs have no memory. It runs with
 * several sizes; each number in the calls is then a constant or an expression of the inputs' sizes.
 * @param dtype - dtype of float parameters
 * @param units - see `WriteOptions`
 * @throws {TroupeError} `EXPORT` naming the module whose operators depend on sizes in another way
 */
export function recordForward(
  model: nn.Module,
  spec: ForwardSpec,
  { dtype = "float32", units = {} }: { dtype?: DType; units?: Readonly<Record<string, number>> } = {},
): RecordedForward {
  const names = new Map([...model.namedModules()].map(([name, module]) => [module, name]));
  const unbind = bindPlaceholders(model, dtype);
  try {
    return nn.evaluating(model, () => {
      const symbols = symbolsOf(spec, units);
      const traces = Array.from({ length: NUM_TRACES }, (_, trace) =>
        traceOnce(model, names, spec, (name) => symbols.get(name)?.values[trace] ?? 0),
      );
      return joinTraces(traces, [...symbols.values()]);
    });
  } catch (error) {
    throw readingValues(error, nn.failedModule(error, model)) ?? error;
  } finally {
    unbind();
  }
}

/** The error for libtorch's about values of a tensor without memory; undefined for other errors. */
function readingValues(error: unknown, module: string | undefined): Error | undefined {
  if (!(error instanceof Error && /Meta tensors|on meta/.test(error.message))) return undefined;
  const hint = "what depends on values cannot be recorded: compute with tensors, such as ops.where";
  return exportError("a forward that reads no numbers from tensors", "one that does", {
    module: module ?? "",
    hint,
  });
}

/** Binds state to tensors without memory. @returns a function that binds the former memory again */
function bindPlaceholders(model: nn.Module, dtype: DType): () => void {
  const state = new Set([...model.namedState().values(), ...model.namedBuffers().values()]);
  const before = [...state].map((parameter) => ({ parameter, tensor: parameter.unbind() }));
  for (const parameter of state) {
    const own =
      parameter.dtype === "float32" && !(parameter instanceof nn.ModuleBuffer) ? dtype : parameter.dtype;
    parameter.bind(hold(ops.troupe.placeholder(parameter.shape, own)));
  }
  return () => {
    for (const { parameter, tensor } of before) {
      parameter.unbind()?.dispose();
      if (tensor !== undefined) parameter.bind(tensor);
    }
  };
}

function symbolsOf(
  { inputs, sums = {} }: ForwardSpec,
  units: Readonly<Record<string, number>>,
): Map<string, SizeSymbol> {
  const named = new Set(
    Object.values(inputs).flatMap(({ shape }) => shape.filter((size) => typeof size === "string")),
  );
  const symbols = new Map<string, SizeSymbol>();
  for (const name of named) {
    if (name in sums) continue;
    const sizes = SIZES[symbols.size % SIZES.length] as readonly number[];
    const unit = units[name] ?? 0;
    // Not multiples: a convolution's last window may be incomplete.
    const values = sizes.map((size, trace) => (unit === 0 ? size : unit * size + 7 * trace));
    symbols.set(name, { name, values });
  }
  for (const [name, [one, other]] of Object.entries(sums)) {
    const [a, b] = [symbols.get(one), symbols.get(other)];
    symbols.set(name, {
      name,
      values: (a?.values ?? []).map((value, trace) => value + (b?.values[trace] ?? 0)),
    });
  }
  return symbols;
}

interface Trace {
  readonly sources: readonly Source[];
  readonly calls: readonly (TracedCall & { readonly module: string })[];
  readonly outputs: readonly { readonly name: string; readonly tensor: TracedTensor }[];
}

interface Source {
  readonly kind: "input" | "parameter" | "constant";
  readonly name: string;
  readonly tensor: TracedTensor;
  readonly values?: TypedArray;
}

function traceOnce(
  model: nn.Module,
  names: ReadonlyMap<nn.Module, string>,
  spec: ForwardSpec,
  sizeNamed: (name: string) => number,
): Trace {
  const sources: Source[] = [];
  const calls: Trace["calls"][number][] = [];
  const path: string[] = [];
  const parameters = new Map<number, string>();
  for (const [name, parameter] of [...model.namedState(), ...model.namedBuffers()])
    parameters.set(parameter.memory.handle, name);
  const inputs = new Map<number, string>();
  const tensors = Object.fromEntries(
    Object.entries(spec.inputs).map(([name, { shape, dtype = "float32" }]) => {
      const sizes = shape.map((size) => (typeof size === "number" ? size : sizeNamed(size)));
      const tensor = hold(ops.troupe.placeholder(sizes, dtype));
      inputs.set(tensor.handle, name);
      return [name, tensor];
    }),
  );
  const where = () => path.at(-1) ?? "";
  const restore = [...names].map(([module, name]) =>
    nn.wrapForward(module, (forward, given) => {
      path.push(name);
      try {
        return (forward as (...all: unknown[]) => unknown)(...given) as never;
      } finally {
        path.pop();
      }
    }),
  );
  try {
    return traceOperators(
      {
        foreign: ({ handle, read, ...traced }) => {
          const parameter = parameters.get(handle);
          const input = inputs.get(handle);
          if (input !== undefined) sources.push({ kind: "input", name: input, tensor: traced });
          else if (parameter !== undefined)
            sources.push({ kind: "parameter", name: parameter, tensor: traced });
          else sources.push({ kind: "constant", name: "", tensor: traced, values: read() });
        },
        called: (call) => calls.push({ ...call, module: where() }),
      },
      (tracedOf) => {
        const made = spec.run(tensors);
        const outputs = Object.entries(made).map(([name, tensor]) => ({ name, tensor: tracedOf(tensor) }));
        for (const tensor of Object.values(tensors)) tracedOf(tensor);
        return { sources, calls, outputs };
      },
    );
  } finally {
    for (const end of restore.toReversed()) end();
    for (const tensor of Object.values(tensors)) tensor.dispose();
  }
}

/** Joins traces of one forward with different sizes. */
function joinTraces(traces: readonly Trace[], symbols: SizeSymbol[]): RecordedForward {
  const [first] = traces as readonly [Trace, ...Trace[]];
  const known = [...symbols];
  const derived = new Map<string, { id: number; dim: number }>();
  const tensors = new Map<number, GraphTensor>();
  const join = (versions: readonly TracedTensor[]): GraphTensor => {
    const [{ id, dtype, shape }] = versions as [TracedTensor];
    const sizes = shape.map((_, dim) => {
      const values = versions.map((version) => version.shape[dim] ?? 0);
      const size = fitSize(values, known);
      if (size !== undefined) return size;
      const symbol = { name: `size_${known.length}`, values };
      known.push(symbol);
      derived.set(symbol.name, { id, dim });
      return sizeOf(symbol);
    });
    const joined = { id, dtype, shape: sizes };
    tensors.set(id, joined);
    return joined;
  };
  const sources = first.sources.map((source, index): GraphSource => {
    const versions = traces.map(({ sources: all }) => all[index] as Source);
    const tensor = join(versions.map((version) => version.tensor));
    const { kind, name } = source;
    if (kind !== "constant") return { kind, name, tensor };
    const values = source.values as TypedArray;
    const isFixed = versions.every((version) => version.values?.join() === values.join());
    if (!isFixed)
      throw exportError(
        "numbers that are the same for all sizes",
        `${tensor.dtype} [${tensor.shape.length} dims] made from sizes`,
        { module: "" },
      );
    return { kind, values, tensor };
  });
  const calls = first.calls.map((call, index): GraphCall => {
    const versions = traces.map(({ calls: all }) => all[index]);
    if (versions.some((version) => version?.operator !== call.operator)) throw branching(call, versions);
    const all = versions as readonly TracedCall[];
    const given = Object.entries(call.arguments).map(([name]): [string, GraphArgument] => [
      name,
      joinArguments(
        all.map((version) => version.arguments[name]),
        known,
        tensors,
        () => unfit(call, name),
      ),
    ]);
    const results = call.results.map((_, place) =>
      join(all.map((version) => version.results[place] as TracedTensor)),
    );
    return { operator: call.operator, arguments: Object.fromEntries(given), results, module: call.module };
  });
  const longer = traces.find((trace) => trace.calls.length !== first.calls.length);
  if (longer !== undefined) throw branching(undefined, [longer.calls[first.calls.length]]);
  const outputs = first.outputs.map(({ name, tensor }) => ({
    name,
    tensor: tensors.get(tensor.id) as GraphTensor,
  }));
  return { sources, calls, outputs, derived };
}

function joinArguments(
  versions: readonly TracedArgument[],
  symbols: readonly SizeSymbol[],
  tensors: ReadonlyMap<number, GraphTensor>,
  refuse: () => Error,
): GraphArgument {
  const [first] = versions;
  if (first === undefined || typeof first === "string") return first;
  if (typeof first === "number") {
    const size = fitSize(versions as readonly number[], symbols);
    if (size === undefined) throw refuse();
    return size;
  }
  if (Array.isArray(first)) {
    const lists = versions as readonly (readonly TracedArgument[])[];
    if (lists.some((list) => list.length !== first.length)) throw refuse();
    return first.map(
      (_, place) =>
        joinArguments(
          lists.map((list) => list[place]),
          symbols,
          tensors,
          refuse,
        ) as Size | GraphTensor | undefined,
    );
  }
  return tensors.get((first as TracedTensor).id);
}

function unfit({ operator, module }: TracedCall & { readonly module: string }, argument: string): Error {
  return exportError(`numbers that follow from the inputs' sizes as ${argument} of ${operator}`, "others", {
    module,
  });
}

function branching(
  call: Trace["calls"][number] | undefined,
  versions: readonly (Trace["calls"][number] | undefined)[],
): Error {
  const other = versions.find((version) => version?.operator !== call?.operator);
  const module = call?.module ?? other?.module ?? "";
  return exportError(
    "the same operators for all sizes of inputs",
    `${call?.operator ?? "none"} and ${other?.operator ?? "none"}`,
    { module },
  );
}
