import { bytesIn } from "../../../compute/tensor/index.ts";
import { exportError } from "../export-error.ts";
import type { ReadParameter } from "../read-from-memory.ts";
import type { GraphArgument, GraphCall, GraphTensor, RecordedForward } from "../trace-forward.ts";
import { GraphBuilder, shapeNames } from "./builder.ts";
import type { FirstCall } from "./parts.ts";
import { isInPlace, makesViews, translate } from "./translations.ts";
import type { Branch, Initializer, OnnxGraph, OnnxNode, OnnxValue } from "./types.ts";
import { Weights } from "./weights.ts";

/** Options of {@link buildGraph}. */
export interface GraphOptions {
  readonly opset: number;
  /** Whether products and embeddings use uint8 weights. */
  readonly quantizes: boolean;
}

/** A {@link FirstCall}, recorded. */
export type RecordedFirstCall = Omit<FirstCall, "spec"> & { readonly forward: RecordedForward };

/**
 * Translates a recorded forward.
 * @param first - makes some of its inputs at the first call. Default: all are given
 * @throws {TroupeError} `EXPORT` for an operator that ONNX lacks, or that writes into a view, with the module that calls it
 */
export function buildGraph(
  forward: RecordedForward,
  read: ReadParameter,
  options: GraphOptions,
  first?: RecordedFirstCall,
): OnnxGraph {
  const initializers = new Map<string, Initializer>();
  const made = first && translated(first.forward, read, options, { initializers, prefix: "first." });
  const names = new Set(first?.forward.outputs.map(({ name }) => name));
  const chosen = (name: string) => (names.has(name) ? `chosen.${name}` : name);
  const { nodes, outputs } = translated(forward, read, options, { initializers, inputName: chosen });
  const all = made === undefined ? nodes : [choice(first as RecordedFirstCall, made, chosen), ...nodes];
  const used = new Set(all.flatMap(readBy));
  return {
    nodes: all,
    initializers: [...initializers.values()].filter(({ name }) => used.has(name)),
    inputs: first === undefined ? inputsOf(forward) : inputsWith(first, inputsOf(forward), names),
    outputs,
  };
}

/** The inputs of a graph that makes those in `names` at its first call. */
function inputsWith(
  { forward, unless, size: [made, given] }: RecordedFirstCall,
  inputs: readonly OnnxValue[],
  names: ReadonlySet<string>,
): OnnxValue[] {
  const renamed = inputs.map((value) =>
    names.has(value.name)
      ? { ...value, shape: value.shape.map((size) => (size === made ? given : size)) }
      : value,
  );
  return [...renamed, ...inputsOf(forward), { name: unless, dtype: "bool", shape: [1] }];
}

/** Takes inputs as they are given, or makes them. */
function choice(
  { forward, unless }: RecordedFirstCall,
  made: Branch,
  chosen: (name: string) => string,
): OnnxNode {
  const given = forward.outputs.map((output) => ({ ...onnxValueOf(output), name: `given.${output.name}` }));
  const copies = given.map(({ name }) => identity(name.slice("given.".length), name));
  return {
    operator: "If",
    inputs: [unless],
    outputs: forward.outputs.map(({ name }) => chosen(name)),
    attributes: {
      then_branch: { graph: { nodes: copies, outputs: given } },
      else_branch: { graph: made },
    },
  };
}

/** Names of the values that a node reads, also in its branches. */
function readBy({ inputs, attributes }: OnnxNode): string[] {
  const branches = Object.values(attributes).flatMap((each) => ("graph" in each ? each.graph.nodes : []));
  return [...inputs, ...branches.flatMap(readBy)];
}

function identity(input: string, output: string): OnnxNode {
  return { operator: "Identity", inputs: [input], outputs: [output], attributes: {} };
}

function inputsOf({ sources }: RecordedForward): OnnxValue[] {
  return sources.flatMap((source) => (source.kind === "input" ? [onnxValueOf(source)] : []));
}

function onnxValueOf({ name, tensor }: RecordedForward["outputs"][number]): OnnxValue {
  return { name, dtype: tensor.dtype, shape: shapeNames(tensor.shape) };
}

/** Options of {@link translated}. */
interface Naming {
  /** Constants of the file, to which those of this forward are added. */
  readonly initializers: Map<string, Initializer>;
  /** Stands before the names of nodes and outputs. Default: nothing. */
  readonly prefix?: string;
  /** The value that an input is, by its name. Default: that of the name. */
  readonly inputName?: (name: string) => string;
}

/** The nodes that compute a recorded forward. */
function translated(
  forward: RecordedForward,
  read: ReadParameter,
  { opset, quantizes }: GraphOptions,
  { initializers, prefix = "", inputName = (name) => name }: Naming,
): Branch {
  refuseWrittenViews(forward.calls);
  const calls = neededCalls(forward);
  const missing = (tensor: GraphTensor) => {
    const value = weights.plain(tensor);
    if (value === undefined) throw new Error(`tensor ${tensor.id} has no value`); // an error of ours
    return value;
  };
  const graph = new GraphBuilder(opset, missing, { initializers, prefix });
  const weights = new Weights(graph, read, quantizes, plainParameters(forward, calls));
  for (const source of forward.sources) {
    const { kind, tensor } = source;
    if (kind === "parameter") weights.hold(source.name, tensor);
    else if (kind === "input") {
      const value = inputName(source.name);
      graph.set(tensor, value);
      for (const [dim, size] of tensor.shape.entries())
        if (typeof size !== "number") graph.setSymbol(shapeNames([size])[0] as string, value, dim);
    } else {
      const { values } = source;
      const name = `${prefix}constant_${tensor.id}`;
      graph.set(
        tensor,
        graph.add(name, tensor.dtype, tensor.shape as number[], async () => bytesIn(values)),
      );
    }
  }
  const derived = Map.groupBy(forward.derived, ([, { id }]) => id);
  for (const call of calls) {
    const values = translate(graph, weights, call);
    for (const [place, tensor] of call.results.entries()) {
      const value = values[place] as string;
      graph.set(tensor, value);
      for (const [name, { dim }] of derived.get(tensor.id) ?? []) graph.setSymbol(name, value, dim);
    }
  }
  const outputs = forward.outputs.map((output) => {
    const value = { ...onnxValueOf(output), name: prefix + output.name };
    graph.nodes.push(identity(graph.value(output.tensor), value.name));
    return value;
  });
  return { nodes: graph.nodes, outputs };
}

/** The calls that outputs depend on. */
function neededCalls({ calls, outputs }: RecordedForward): GraphCall[] {
  const needed = new Set(outputs.map(({ tensor }) => tensor.id));
  const kept = calls.toReversed().filter((call) => {
    const isNeeded = call.results.some(({ id }) => needed.has(id));
    if (isNeeded) for (const { id } of tensorsOf(call)) needed.add(id);
    return isNeeded;
  });
  return kept.toReversed();
}

function tensorsOf({ arguments: given }: GraphCall): GraphTensor[] {
  return Object.values(given)
    .flatMap((argument) => [argument].flat() as GraphArgument[])
    .filter(isTensor);
}

function isTensor(argument: GraphArgument): argument is GraphTensor {
  return typeof argument === "object" && "id" in argument;
}

/** Names of parameters with another use than as the weight of a linear map. */
function plainParameters({ sources }: RecordedForward, calls: readonly GraphCall[]): Set<string> {
  const names = new Map(
    sources.filter((source) => source.kind === "parameter").map(({ name, tensor }) => [tensor.id, name]),
  );
  const others = calls.flatMap((call) => {
    const linear = call.operator === "aten::linear" ? call.arguments.weight : undefined;
    return tensorsOf(call).filter((tensor) => tensor !== linear);
  });
  return new Set(others.flatMap(({ id }) => names.get(id) ?? []));
}

/** Refuses operators in place on memory with several names: ONNX's values never change. */
function refuseWrittenViews(calls: readonly GraphCall[]): void {
  const memory = new Map<number, number>();
  const shared = new Set<number>();
  const memoryOf = ({ id }: GraphTensor) => memory.get(id) ?? id;
  for (const { operator, arguments: given, results, module } of calls) {
    const [first] = Object.values(given);
    if (!isTensor(first as GraphArgument)) continue;
    const own = memoryOf(first as GraphTensor);
    if (isInPlace(operator)) {
      if (shared.has(own))
        throw exportError("operators in place on tensors without views", operator, { module });
      for (const { id } of results) memory.set(id, own);
    } else if (makesViews(operator)) {
      for (const { id } of results) memory.set(id, own);
      shared.add(own);
    }
  }
}
