import { bytesIn, type DType, noGrad, scope, type Tensor } from "../../../compute/tensor/index.ts";
import type { ReadParameter } from "../read-from-memory.ts";
import type { GraphTensor } from "../trace-forward.ts";
import type { GraphBuilder } from "./builder.ts";

/** A parameter of the model in a graph. */
interface HeldParameter {
  readonly name: string;
  readonly tensor: GraphTensor;
}

/** Middle of the unsigned range, which stands for 0. */
const ZERO_POINT = 128;
const LARGEST = 127;

/**
 * A model's parameters in a graph. A matrix that is only multiplied from the right by its transpose is stored transposed; with
 * `quantize` the matrices of products and embeddings are stored as uint8 with one scale per output, and inputs of products are
 * quantized when they come, as by onnxruntime's `quantize_dynamic`.
 */
export class Weights {
  readonly #graph: GraphBuilder;
  readonly #read: ReadParameter;
  readonly #quantizes: boolean;
  readonly #held = new Map<number, HeldParameter>();
  /** Names of parameters with another use than as the transposed factor of a product. */
  readonly #plain: ReadonlySet<string>;

  constructor(graph: GraphBuilder, read: ReadParameter, quantizes: boolean, plain: ReadonlySet<string>) {
    this.#graph = graph;
    this.#read = read;
    this.#quantizes = quantizes;
    this.#plain = plain;
  }

  /** Declares a parameter. Its values are added to the graph when a node reads them. */
  hold(name: string, tensor: GraphTensor): void {
    this.#held.set(tensor.id, { name, tensor });
  }

  /** The parameter's values, as they are in the model; undefined for a tensor that is no parameter. */
  plain({ id, dtype }: GraphTensor): string | undefined {
    const held = this.#held.get(id);
    if (held === undefined) return undefined;
    return this.#add(held.name, dtype, shapeOf(held), held, (values) => values);
  }

  /** x · w, or x · wᵀ. @param x - a value [..., in] */
  product(x: string, w: GraphTensor, isTransposed: boolean): string {
    const held = this.#held.get(w.id);
    const graph = this.#graph;
    if (held === undefined) {
      const value = graph.value(w);
      return graph.node("MatMul", [x, isTransposed ? graph.transpose(value, [1, 0]) : value]);
    }
    if (this.#quantizes && w.shape.length === 2) return this.#quantizedProduct(x, held, isTransposed);
    if (!isTransposed) return graph.node("MatMul", [x, this.plain(w) as string]);
    if (this.#plain.has(held.name))
      return graph.node("MatMul", [x, graph.transpose(this.plain(w) as string, [1, 0])]);
    const turned = this.#add(`${held.name}.t`, w.dtype, shapeOf(held).toReversed(), held, (values) =>
      values.t(),
    );
    return graph.node("MatMul", [x, turned]);
  }

  /** Rows of a table. @param ids - a value */
  rows(table: GraphTensor, ids: string): string {
    const held = this.#held.get(table.id);
    const graph = this.#graph;
    const axis = { axis: { int: 0 } };
    if (held === undefined) return graph.node("Gather", [graph.value(table), ids], axis);
    if (!this.#quantizes) return graph.node("Gather", [this.plain(table) as string, ids], axis);
    const { values, scales } = this.#quantized(held, 0);
    const picked = graph.cast(graph.node("Gather", [values, ids], axis), "uint8", table.dtype);
    const centred = graph.node("Sub", [picked, graph.scalar(ZERO_POINT, table.dtype)]);
    return graph.node("Mul", [centred, graph.unsqueeze(graph.node("Gather", [scales, ids], axis), -1)]);
  }

  #quantizedProduct(x: string, held: HeldParameter, isTransposed: boolean): string {
    const graph = this.#graph;
    const { dtype } = held.tensor;
    const { values, scales } = this.#quantized(held, isTransposed ? 0 : 1);
    const [narrow = "", scale = "", zero = ""] = graph.nodeOf("DynamicQuantizeLinear", [x], {}, 3);
    const factor = isTransposed ? graph.transpose(values, [1, 0]) : values;
    const sums = graph.node("MatMulInteger", [narrow, factor, zero, graph.scalar(ZERO_POINT, "uint8")]);
    return graph.node("Mul", [graph.cast(sums, "int32", dtype), graph.node("Mul", [scales, scale])]);
  }

  /** @param outputs - the dim of the outputs, each with its own scale */
  #quantized(held: HeldParameter, outputs: 0 | 1): { readonly values: string; readonly scales: string } {
    const { name, tensor } = held;
    const suffix = outputs === 0 ? "rows" : "columns";
    const scaleOf = (values: Tensor) =>
      values
        .abs()
        .amax([1 - outputs], true)
        .div(LARGEST)
        .clampMin(1e-30);
    return {
      values: this.#add(`${name}.${suffix}`, "uint8", shapeOf(held), held, (values) =>
        values.div(scaleOf(values)).round().add(ZERO_POINT).clamp(0, 255),
      ),
      scales: this.#add(
        `${name}.${suffix}.scale`,
        tensor.dtype,
        [shapeOf(held)[outputs] ?? 0],
        held,
        (values) => scaleOf(values).view([-1]),
      ),
    };
  }

  #add(
    name: string,
    dtype: DType,
    shape: readonly number[],
    held: HeldParameter,
    change: (values: Tensor) => Tensor,
  ): string {
    const graph = this.#graph;
    if (graph.initializers.has(name)) return name;
    return graph.add(name, dtype, shape, async () => {
      using values = await this.#read(held.name);
      return scope(() => noGrad(() => bytesIn(change(values).to(dtype).contiguous().toTypedArray())));
    });
  }
}

function shapeOf({ tensor }: HeldParameter): number[] {
  return tensor.shape as number[];
}
