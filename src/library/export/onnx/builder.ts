import { type DType, itemBytes, numelOf } from "../../../compute/tensor/index.ts";
import { isSameSize, type Size, type SizeSymbol, textOfSize } from "../sizes.ts";
import type { GraphTensor } from "../trace-forward.ts";
import { type Attribute, bytesOfNumbers, type Initializer, type OnnxNode, typeCode } from "./types.ts";

/** Makes the nodes of a graph. Equal nodes are made once. */
export class GraphBuilder {
  readonly opset: number;
  readonly nodes: OnnxNode[] = [];
  readonly initializers: Map<string, Initializer>;
  readonly #made = new Map<string, readonly string[]>();
  readonly #values = new Map<number, string>();
  readonly #symbols = new Map<string, { readonly value: string; readonly dim: number }>();

  readonly #missing: (tensor: GraphTensor) => string;
  readonly #prefix: string;

  /**
   * @param missing - makes the value of a tensor that has none yet
   * @param initializers - constants of the file, to which those of this graph are added
   * @param prefix - stands before the names of nodes
   */
  constructor(
    opset: number,
    missing: (tensor: GraphTensor) => string,
    { initializers, prefix }: { readonly initializers: Map<string, Initializer>; readonly prefix: string },
  ) {
    this.opset = opset;
    this.initializers = initializers;
    this.#missing = missing;
    this.#prefix = prefix;
  }

  /** Says which value of the graph a recorded tensor is. */
  set({ id }: GraphTensor, value: string): void {
    this.#values.set(id, value);
  }

  /** The value of a recorded tensor. */
  value(tensor: GraphTensor): string {
    return this.#values.get(tensor.id) ?? this.#missing(tensor);
  }

  /** Says which dim of a value has the size of a symbol. */
  setSymbol(name: string, value: string, dim: number): void {
    if (!this.#symbols.has(name)) this.#symbols.set(name, { value, dim });
  }

  /** Adds a node with one output. @returns the output's name */
  node(
    operator: string,
    inputs: readonly (string | undefined)[],
    attributes: Readonly<Record<string, Attribute>> = {},
  ): string {
    return this.nodeOf(operator, inputs, attributes, 1)[0] as string;
  }

  /** Adds a node. @returns the outputs' names */
  nodeOf(
    operator: string,
    given: readonly (string | undefined)[],
    attributes: Readonly<Record<string, Attribute>>,
    numOutputs: number,
  ): readonly string[] {
    const inputs = given.map((input) => input ?? "");
    const key = JSON.stringify([operator, inputs, attributes, numOutputs]);
    const before = this.#made.get(key);
    if (before !== undefined) return before;
    const name = `${this.#prefix}${operator}_${this.nodes.length}`;
    const outputs = Array.from({ length: numOutputs }, (_, place) =>
      place === 0 ? name : `${name}_${place}`,
    );
    this.nodes.push({ operator, inputs, outputs, attributes });
    this.#made.set(key, outputs);
    return outputs;
  }

  /** A constant of few numbers. @param shape - default: 1-D @returns its name */
  constant(values: readonly number[], dtype: DType, shape: readonly number[] = [values.length]): string {
    const name = `${dtype}_${shape.join("x") || "scalar"}_${values.join("_")}`;
    const key = name.length <= 100 ? name : `constant_${this.initializers.size}`;
    if (!this.initializers.has(key)) this.add(key, dtype, shape, async () => bytesOfNumbers(values, dtype));
    return key;
  }

  /** A number of a dtype, 0-dim. */
  scalar(value: number, dtype: DType): string {
    return this.constant([value], dtype, []);
  }

  /** Adds a constant whose bytes are read later. */
  add(name: string, dtype: DType, shape: readonly number[], read: () => Promise<Uint8Array>): string {
    const sizeBytes = numelOf(shape) * itemBytes(dtype);
    this.initializers.set(name, { name, dtype, shape, sizeBytes, read });
    return name;
  }

  cast(value: string, from: DType, to: DType): string {
    return from === to ? value : this.node("Cast", [value], { to: { int: typeCode(to) } });
  }

  /** The value of a recorded tensor, cast. */
  as(tensor: GraphTensor, dtype: DType): string {
    return this.cast(this.value(tensor), tensor.dtype, dtype);
  }

  /** A size as int64 [1]. */
  size(size: Size): string {
    if (typeof size === "number") return this.constant([size], "int64");
    const { terms, offset, divisor } = size;
    const products = terms.map(({ factor, symbols }) => {
      const product = symbols
        .map((symbol) => this.#symbol(symbol))
        .reduce((a, b) => this.node("Mul", [a, b]));
      return factor === 1 ? product : this.node("Mul", [product, this.constant([factor], "int64")]);
    });
    const sum = products.reduce((a, b) => this.node("Add", [a, b]));
    const moved = offset === 0 ? sum : this.node("Add", [sum, this.constant([offset], "int64")]);
    return divisor === 1 ? moved : this.node("Div", [moved, this.constant([divisor], "int64")]);
  }

  /** A size as a 0-dim number. */
  sizeScalar(size: Size, dtype: DType = "int64"): string {
    if (typeof size === "number") return this.scalar(size, dtype);
    const scalar = this.node("Squeeze", [this.size(size), this.constant([0], "int64")]);
    return this.cast(scalar, "int64", dtype);
  }

  /** Sizes as int64 [n]. */
  sizes(sizes: readonly Size[]): string {
    if (sizes.every((size) => typeof size === "number")) return this.constant(sizes as number[], "int64");
    return this.node(
      "Concat",
      sizes.map((size) => this.size(size)),
      { axis: { int: 0 } },
    );
  }

  /** Reshapes a value. @param from - its shape */
  reshape(value: string, from: readonly Size[], to: readonly Size[]): string {
    if (from.length === to.length && to.every((size, dim) => isSameSize(size, from[dim] ?? 0))) return value;
    const kept = (size: Size, dim: number) => from[dim] !== undefined && isSameSize(size, from[dim]);
    const open = to.filter((size, dim) => typeof size !== "number" && !kept(size, dim));
    const hasZero = to.includes(0);
    if (open.length > 1 || hasZero) return this.node("Reshape", [value, this.sizes(to)]);
    const target = to.map((size, dim) => (typeof size === "number" ? size : kept(size, dim) ? 0 : -1));
    return this.node("Reshape", [value, this.constant(target, "int64")]);
  }

  /** Expands a value to a shape. */
  expand(value: string, from: readonly Size[], to: readonly Size[]): string {
    if (from.length === to.length && to.every((size, dim) => isSameSize(size, from[dim] ?? 0))) return value;
    return this.node("Expand", [value, this.sizes(to)]);
  }

  /** The numbers 0, 1, … below a size, int64 [n]. */
  range(end: Size): string {
    return this.node("Range", [this.scalar(0, "int64"), this.sizeScalar(end), this.scalar(1, "int64")]);
  }

  unsqueeze(value: string, ...dims: readonly number[]): string {
    return this.node("Unsqueeze", [value, this.constant(dims, "int64")]);
  }

  /** Cuts a value along a dim. */
  slice(value: string, dim: number, begin: Size, end: Size, step = 1): string {
    const axes = this.constant([dim], "int64");
    return this.node("Slice", [
      value,
      this.size(begin),
      this.size(end),
      axes,
      this.constant([step], "int64"),
    ]);
  }

  transpose(value: string, order: readonly number[]): string {
    return this.node("Transpose", [value], { perm: { ints: order } });
  }

  /** Reduces dims by an operator such as ReduceMean. */
  reduce(operator: string, value: string, dims: readonly number[], keepDims: boolean): string {
    const keepdims = { int: keepDims ? 1 : 0 };
    if (this.opset >= 18 || operator === "ReduceSum")
      return this.node(operator, [value, this.constant(dims, "int64")], { keepdims });
    return this.node(operator, [value], { axes: { ints: dims }, keepdims });
  }

  #symbol({ name }: SizeSymbol): string {
    const place = this.#symbols.get(name);
    if (place === undefined) throw new Error(`size ${name} is of no value`); // an error of ours
    return this.node("Shape", [place.value], { start: { int: place.dim }, end: { int: place.dim + 1 } });
  }
}

/** Names of a value's sizes, for the graph's inputs and outputs. */
export function shapeNames(shape: readonly Size[]): (number | string)[] {
  return shape.map((size) => (typeof size === "number" ? size : textOfSize(size)));
}
