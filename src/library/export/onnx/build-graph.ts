import { exportError } from "../export-error.ts";
import type { ReadParameter } from "../read-from-memory.ts";
import type { GraphArgument, GraphCall, GraphTensor, RecordedForward } from "../trace-forward.ts";
import { GraphBuilder, shapeNames } from "./builder.ts";
import { isInPlace, makesViews, translate } from "./translations.ts";
import { bytesOf, type OnnxGraph } from "./types.ts";
import { Weights } from "./weights.ts";

/** Options of {@link buildGraph}. */
export interface GraphOptions {
  readonly opset: number;
  /** Whether products and embeddings use uint8 weights. */
  readonly quantizes: boolean;
}

/**
 * Translates a recorded forward.
 * @throws {TroupeError} `EXPORT` for an operator that ONNX lacks, or that writes into a view, with the module that calls it
 */
export function buildGraph(
  forward: RecordedForward,
  read: ReadParameter,
  { opset, quantizes }: GraphOptions,
): OnnxGraph {
  refuseWrittenViews(forward.calls);
  const calls = neededCalls(forward);
  const graph = new GraphBuilder(opset, (tensor) => {
    const value = weights.plain(tensor);
    if (value === undefined) throw new Error(`tensor ${tensor.id} has no value`); // an error of ours
    return value;
  });
  const weights = new Weights(graph, read, quantizes, plainParameters(forward, calls));
  for (const source of forward.sources) {
    const { kind, tensor } = source;
    if (kind === "parameter") weights.hold(source.name, tensor);
    else if (kind === "input") {
      graph.set(tensor, source.name);
      for (const [dim, size] of tensor.shape.entries())
        if (typeof size !== "number") graph.setSymbol(shapeNames([size])[0] as string, source.name, dim);
    } else {
      const { values } = source;
      const shape = tensor.shape as number[];
      graph.set(
        tensor,
        graph.add(`constant_${tensor.id}`, tensor.dtype, shape, async () => bytesOf(values)),
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
  const outputs = forward.outputs.map(({ name, tensor }) => {
    graph.nodes.push({
      operator: "Identity",
      inputs: [graph.value(tensor)],
      outputs: [name],
      attributes: {},
    });
    return { name, dtype: tensor.dtype, shape: shapeNames(tensor.shape) };
  });
  const inputs = forward.sources
    .filter((source) => source.kind === "input")
    .map(({ name, tensor }) => ({ name, dtype: tensor.dtype, shape: shapeNames(tensor.shape) }));
  const used = new Set(graph.nodes.flatMap((node) => node.inputs));
  const initializers = [...graph.initializers.values()].filter(({ name }) => used.has(name));
  return { nodes: graph.nodes, initializers, inputs, outputs };
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
      if (shared.has(own)) throw exportError("operators in place on tensors without views", operator, module);
      for (const { id } of results) memory.set(id, own);
    } else if (makesViews(operator)) {
      for (const { id } of results) memory.set(id, own);
      shared.add(own);
    }
  }
}
