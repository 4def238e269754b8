import type { DType } from "../../../compute/tensor/index.ts";
import { exportError } from "../export-error.ts";
import { isSameSize, type Size } from "../sizes.ts";
import type { GraphArgument, GraphCall, GraphTensor } from "../trace-forward.ts";
import { attention, rotary } from "./attention.ts";
import type { GraphBuilder } from "./builder.ts";
import { unknownOperator } from "./types.ts";
import type { Weights } from "./weights.ts";

/** A call of an operator that is translated: reads its arguments and makes nodes. */
class Translation {
  readonly graph: GraphBuilder;
  readonly weights: Weights;
  readonly call: GraphCall;

  constructor(graph: GraphBuilder, weights: Weights, call: GraphCall) {
    this.graph = graph;
    this.weights = weights;
    this.call = call;
  }

  /** The first result. */
  get result(): GraphTensor {
    return this.call.results[0] as GraphTensor;
  }

  has(name: string): boolean {
    return this.call.arguments[name] !== undefined;
  }

  tensor(name: string): GraphTensor {
    return this.call.arguments[name] as GraphTensor;
  }

  tensors(name: string): readonly GraphTensor[] {
    return this.call.arguments[name] as readonly GraphTensor[];
  }

  /** The value of a tensor argument; undefined if it was left out. */
  value(name: string): string {
    return this.graph.value(this.tensor(name));
  }

  /** A tensor argument in a dtype. Default: the result's. */
  as(name: string, dtype = this.result.dtype): string {
    return this.graph.as(this.tensor(name), dtype);
  }

  size(name: string): Size {
    return this.call.arguments[name] as Size;
  }

  sizes(name: string): readonly Size[] {
    return this.call.arguments[name] as readonly Size[];
  }

  text(name: string): string {
    return this.call.arguments[name] as string;
  }

  /** A number that does not depend on sizes. @throws {TroupeError} `EXPORT` */
  number(name: string): number {
    return this.#fixed(name, this.call.arguments[name]);
  }

  numbers(name: string): number[] {
    const list = this.call.arguments[name] as readonly GraphArgument[];
    return list.map((one) => this.#fixed(name, one));
  }

  /** A dim counted from the front. */
  dim(name: string, rank: number): number {
    const dim = this.number(name);
    return dim < 0 ? dim + rank : dim;
  }

  dims(name: string, rank: number): number[] {
    const dims = this.has(name) ? this.numbers(name) : [];
    if (dims.length === 0) return Array.from({ length: rank }, (_, dim) => dim);
    return dims.map((dim) => (dim < 0 ? dim + rank : dim));
  }

  #fixed(name: string, value: GraphArgument): number {
    if (typeof value === "number") return value;
    const { operator, module } = this.call;
    throw exportError(`${name} of ${operator} to be the same for all sizes`, "one that follows them", {
      module,
    });
  }
}

type Translate = (of: Translation) => string | readonly string[];

const unary =
  (operator: string): Translate =>
  (of) =>
    of.graph.node(operator, [of.as("self")]);

const floats: readonly DType[] = ["float16", "bfloat16", "float32", "float64"];

/** Dtype in which two operands are compared. */
function commonType(one: DType, other: DType): DType {
  if (one === other) return one;
  const order: readonly DType[] = ["bool", "uint8", "int8", "int16", "int32", "int64", ...floats];
  return order[Math.max(order.indexOf(one), order.indexOf(other))] as DType;
}

/** The operands of an operator on two tensors, or a tensor and a number. */
function operands(of: Translation, dtype: DType | undefined, right = "other"): string[] {
  const given = of.call.arguments[right] as GraphTensor | Size;
  const self = of.tensor("self");
  const isTensor = typeof given === "object" && "id" in given;
  const fraction = typeof given === "number" && !Number.isInteger(given);
  const type =
    dtype ??
    (isTensor
      ? commonType(self.dtype, given.dtype)
      : fraction && !floats.includes(self.dtype)
        ? "float32"
        : self.dtype);
  const other = isTensor ? of.graph.as(given, type) : of.graph.sizeScalar(given, type);
  return [of.graph.as(self, type), other];
}

const binary =
  (operator: string, right = "other"): Translate =>
  (of) =>
    of.graph.node(operator, operands(of, of.result.dtype, right));

const compare =
  (operator: string): Translate =>
  (of) =>
    of.graph.node(operator, operands(of, undefined));

const logical =
  (operator: string): Translate =>
  (of) =>
    of.graph.node(operator, operands(of, "bool"));

/** self ± alpha · other */
const sum =
  (operator: string, isReversed = false): Translate =>
  (of) => {
    const [self = "", other = ""] = operands(of, of.result.dtype);
    const alpha = of.has("alpha") ? of.number("alpha") : 1;
    const [left, scaled] = isReversed ? [other, self] : [self, other];
    const right =
      alpha === 1 ? scaled : of.graph.node("Mul", [scaled, of.graph.scalar(alpha, of.result.dtype)]);
    return of.graph.node(operator, [left, right]);
  };

const reduced =
  (operator: string): Translate =>
  (of) => {
    const self = of.tensor("self");
    const dims = of.dims("dim", self.shape.length);
    const keeps = of.has("keepdim") && of.number("keepdim") !== 0;
    return of.graph.reduce(operator, of.graph.as(self, of.result.dtype), dims, keeps);
  };

const reshaped: Translate = (of) =>
  of.graph.reshape(of.value("self"), of.tensor("self").shape, of.result.shape);

const expanded: Translate = (of) =>
  of.graph.expand(of.value("self"), of.tensor("self").shape, of.result.shape);

const same: Translate = (of) => of.value("self");

const activation =
  (operator: string, attributes: (of: Translation) => Readonly<Record<string, number>>): Translate =>
  (of) =>
    of.graph.node(
      operator,
      [of.value("self")],
      Object.fromEntries(Object.entries(attributes(of)).map(([name, float]) => [name, { float }])),
    );

/** x · Φ(x), exact or by tanh. */
function gelu(graph: GraphBuilder, x: string, dtype: DType, approximate: string): string {
  if (graph.opset >= 20) return graph.node("Gelu", [x], { approximate: { string: approximate } });
  const number = (value: number) => graph.scalar(value, dtype);
  if (approximate === "none") {
    const erf = graph.node("Erf", [graph.node("Div", [x, number(Math.SQRT2)])]);
    const twice = graph.node("Mul", [x, graph.node("Add", [erf, number(1)])]);
    return graph.node("Mul", [twice, number(0.5)]);
  }
  const cube = graph.node("Mul", [graph.node("Mul", [x, x]), x]);
  const inner = graph.node("Add", [x, graph.node("Mul", [cube, number(0.044715)])]);
  const tanh = graph.node("Tanh", [graph.node("Mul", [inner, number(Math.sqrt(2 / Math.PI))])]);
  return graph.node("Mul", [graph.node("Mul", [x, number(0.5)]), graph.node("Add", [tanh, number(1)])]);
}

function silu(graph: GraphBuilder, x: string): string {
  return graph.node("Mul", [x, graph.node("Sigmoid", [x])]);
}

function softmax(of: Translation, operator: string): string {
  return of.graph.node(operator, [of.as("self")], { axis: { int: of.number("dim") } });
}

function triangle(of: Translation, upper: 0 | 1): string {
  const diagonal = of.graph.sizeScalar(of.size("diagonal"));
  return of.graph.node("Trilu", [of.value("self"), diagonal], { upper: { int: upper } });
}

/** A tensor argument; one number of the result's dtype at each place where it was left out. */
function orFilled(of: Translation, name: string, number: number, shape: readonly Size[]): string {
  return of.has(name) ? of.as(name) : of.graph.expand(of.graph.scalar(number, of.result.dtype), [], shape);
}

/** Layer norm over the last dims. @param sizes - of those */
function layerNorm(of: Translation, x: string, sizes: readonly Size[]): string {
  const { graph } = of;
  const bias = of.has("bias") ? [of.as("bias")] : [];
  const axis = -sizes.length;
  return graph.node("LayerNormalization", [x, orFilled(of, "weight", 1, sizes), ...bias], {
    axis: { int: axis },
    epsilon: { float: of.number("eps") },
  });
}

/** x / √(mean x² + eps) · weight over the last dim, in float32. */
function rmsNorm(of: Translation, x: string, dtype: DType): string {
  const { graph } = of;
  const wide = graph.cast(x, dtype, "float32");
  const squares = graph.node("Pow", [wide, graph.scalar(2, "float32")]);
  const mean = graph.reduce("ReduceMean", squares, [-1], true);
  const root = graph.node("Sqrt", [graph.node("Add", [mean, graph.scalar(of.number("eps"), "float32")])]);
  const normed = graph.node("Div", [wide, root]);
  const weight = of.as("weight", "float32");
  return graph.cast(graph.node("Mul", [normed, weight]), "float32", dtype);
}

/** Numbers of a window, one for each dim; a single one is for all. */
function eachDim(
  of: Translation,
  name: string,
  rank: number,
  otherwise: readonly number[],
): readonly number[] {
  const values = of.has(name) ? of.numbers(name) : [];
  if (values.length === 0) return otherwise;
  return values.length === rank ? values : Array<number>(rank).fill(values[0] ?? 0);
}

/** @throws {TroupeError} `EXPORT` for an argument that ONNX lacks, unless it is left out or has its default */
function refuseGiven(of: Translation, name: string, otherwise?: number): void {
  const given = of.call.arguments[name];
  const { operator, module } = of.call;
  if (given !== undefined && given !== otherwise)
    throw unknownOperator(`${operator} with ${name} ${String(given)}`, module);
}

const convolution =
  (rank: number): Translate =>
  (of) => {
    const each = (name: string) => eachDim(of, name, rank, []);
    const padding = each("padding");
    return of.graph.node(
      "Conv",
      ["input", "weight", "bias"].filter((name) => of.has(name)).map((name) => of.value(name)),
      {
        strides: { ints: each("stride") },
        pads: { ints: [...padding, ...padding] },
        dilations: { ints: each("dilation") },
        group: { int: of.number("groups") },
      },
    );
  };

const pooling =
  (operator: string, rank: number): Translate =>
  (of) => {
    refuseGiven(of, "divisor_override");
    const each = (name: string, otherwise: readonly number[]) => eachDim(of, name, rank, otherwise);
    const kernel = each("kernel_size", []);
    const padding = each("padding", Array<number>(rank).fill(0));
    return of.graph.node(operator, [of.value("self")], {
      kernel_shape: { ints: kernel },
      strides: { ints: each("stride", kernel) },
      pads: { ints: [...padding, ...padding] },
      ceil_mode: { int: of.has("ceil_mode") ? of.number("ceil_mode") : 0 },
      ...(operator === "AveragePool" && {
        count_include_pad: { int: of.has("count_include_pad") ? of.number("count_include_pad") : 1 },
      }),
      ...(operator === "MaxPool" && of.has("dilation") && { dilations: { ints: each("dilation", []) } }),
    });
  };

/** A tensor of one number, or of that in an argument. */
const filled =
  (number: number | string): Translate =>
  (of) => {
    const { dtype, shape } = of.result;
    const value = of.graph.sizeScalar(typeof number === "string" ? of.size(number) : number, dtype);
    return shape.length === 0 ? value : of.graph.expand(value, [], shape);
  };

const split: Translate = (of) => {
  const self = of.tensor("self");
  const dim = of.dim("dim", self.shape.length);
  const parts = of.call.results.map(({ shape }) => shape[dim] as Size);
  return of.graph.nodeOf(
    "Split",
    [of.value("self"), of.graph.sizes(parts)],
    { axis: { int: dim } },
    parts.length,
  );
};

const permuted = (of: Translation, order: readonly number[]) => of.graph.transpose(of.value("self"), order);

function swapped(rank: number, one: number, other: number): number[] {
  return Array.from({ length: rank }, (_, dim) => (dim === one ? other : dim === other ? one : dim));
}

/** Cuts [begin, end) with torch's rules for dims counted from the end. */
const sliced: Translate = (of) => {
  const { graph } = of;
  const self = of.tensor("self");
  const dim = of.dim("dim", self.shape.length);
  const begin = of.has("start") ? of.size("start") : 0;
  const end = of.has("end") ? of.size("end") : Number.MAX_SAFE_INTEGER;
  const step = of.number("step");
  const isComplete = begin === 0 && step === 1 && isSameSize(of.result.shape[dim] ?? 0, self.shape[dim] ?? 0);
  return isComplete ? of.value("self") : graph.slice(of.value("self"), dim, begin, end, step);
};

const narrowed: Translate = (of) => {
  const { graph } = of;
  const self = of.tensor("self");
  const dim = of.dim("dim", self.shape.length);
  const length = of.result.shape[dim] as Size;
  if (isSameSize(length, self.shape[dim] ?? 0)) return of.value("self");
  const start = of.size("start");
  const end =
    typeof start === "number" && typeof length === "number"
      ? graph.constant([start + length], "int64")
      : graph.node("Add", [graph.size(start), graph.size(length)]);
  const [axis, step] = [graph.constant([dim], "int64"), graph.constant([1], "int64")];
  return graph.node("Slice", [of.value("self"), graph.size(start), end, axis, step]);
};

/** Windows of a dim, as a last dim. */
const unfolded: Translate = (of) => {
  const { graph } = of;
  const self = of.tensor("self");
  const rank = self.shape.length;
  const dim = of.dim("dimension", rank);
  const starts = graph.unsqueeze(
    graph.node("Mul", [graph.range(of.result.shape[dim] as Size), graph.scalar(of.number("step"), "int64")]),
    1,
  );
  const places = graph.node("Add", [starts, graph.range(of.size("size"))]); // [n, size]
  const windows = graph.node("Gather", [of.value("self"), places], { axis: { int: dim } });
  const order = Array.from({ length: rank + 1 }, (_, place) => place).filter((place) => place !== dim + 1);
  return graph.transpose(windows, [...order, dim + 1]);
};

const arange: Translate = (of) => {
  const { dtype } = of.result;
  const [start, end, step] = [of.size("start"), of.size("end"), of.size("step")];
  const ranged: DType = ["float32", "float64", "int16", "int32", "int64"].includes(dtype) ? dtype : "float32";
  const scalars = [start, end, step].map((size) => of.graph.sizeScalar(size, ranged));
  return of.graph.cast(of.graph.node("Range", scalars), ranged, dtype);
};

const matmul =
  (right: string): Translate =>
  (of) =>
    of.weights.product(of.value("self"), of.tensor(right), false);

const where: Translate = (of) => {
  const { dtype } = of.result;
  const condition = of.as("condition", "bool");
  return of.graph.node("Where", [condition, ...operands(of, dtype)]);
};

const masked: Translate = (of) => {
  const { graph } = of;
  const value = of.call.arguments.value as GraphTensor | Size;
  const { dtype } = of.result;
  const filling =
    typeof value === "object" && "id" in value ? graph.as(value, dtype) : graph.sizeScalar(value, dtype);
  return graph.node("Where", [of.as("mask", "bool"), filling, of.value("self")]);
};

const clamped: Translate = (of) => {
  const { graph } = of;
  const { dtype } = of.result;
  const bound = (name: string) => (of.has(name) ? graph.sizeScalar(of.size(name), dtype) : undefined);
  const [low, high] = [bound("min"), bound("max")];
  return graph.node("Clip", [of.as("self"), low, ...(high === undefined ? [] : [high])]);
};

/** The largest or smallest, and its index. */
const extreme =
  (values: string, index: string): Translate =>
  (of) => {
    const self = of.tensor("self");
    const dim = of.dim("dim", self.shape.length);
    const keeps = of.number("keepdim") !== 0;
    const found = of.graph.node(index, [of.value("self")], {
      axis: { int: dim },
      keepdims: { int: keeps ? 1 : 0 },
    });
    return [of.graph.reduce(values, of.value("self"), [dim], keeps), found];
  };

const indexOf =
  (operator: string): Translate =>
  (of) => {
    const self = of.tensor("self");
    const keepdims = { int: of.number("keepdim") };
    if (!of.has("dim")) {
      const flat = of.graph.node("Reshape", [of.value("self"), of.graph.constant([-1], "int64")]);
      return of.graph.node(operator, [flat], { axis: { int: 0 }, keepdims: { int: 0 } });
    }
    return of.graph.node(operator, [of.value("self")], {
      axis: { int: of.dim("dim", self.shape.length) },
      keepdims,
    });
  };

const groupNorm: Translate = (of) => {
  const { graph } = of;
  const input = of.tensor("input");
  const { dtype } = of.result;
  const numGroups = of.number("num_groups");
  const one = (value: number) => graph.constant(Array<number>(numGroups).fill(value), dtype);
  const shape = graph.constant([0, numGroups, -1], "int64");
  const flat = graph.node("Reshape", [of.value("input"), shape]);
  const normed = graph.node("InstanceNormalization", [flat, one(1), one(0)], {
    epsilon: { float: of.number("eps") },
  });
  const shaped = graph.node("Reshape", [normed, graph.node("Shape", [of.value("input")])]);
  const perChannel = [-1, ...Array<number>(input.shape.length - 2).fill(1)];
  const wide = (name: string) => graph.node("Reshape", [of.as(name), graph.constant(perChannel, "int64")]);
  const scaled = of.has("weight") ? graph.node("Mul", [shaped, wide("weight")]) : shaped;
  return of.has("bias") ? graph.node("Add", [scaled, wide("bias")]) : scaled;
};

const batchNorm: Translate = (of) => {
  if (of.number("training") !== 0) throw unknownOperator("batch_norm in training mode", of.call.module);
  const channels = [of.tensor("running_mean").shape[0] as Size];
  const affine = [orFilled(of, "weight", 1, channels), orFilled(of, "bias", 0, channels)];
  const running = [of.value("running_mean"), of.value("running_var")];
  return of.graph.node("BatchNormalization", [of.value("input"), ...affine, ...running], {
    epsilon: { float: of.number("eps") },
  });
};

const padded: Translate = (of) => {
  const { graph } = of;
  const self = of.tensor("self");
  const pads = of.numbers("pad");
  const rank = self.shape.length;
  const [before, after] = [Array<number>(rank).fill(0), Array<number>(rank).fill(0)];
  for (let pair = 0; pair < pads.length / 2; pair++) {
    before[rank - 1 - pair] = pads[2 * pair] ?? 0;
    after[rank - 1 - pair] = pads[2 * pair + 1] ?? 0;
  }
  if (of.has("mode") && of.text("mode") !== "constant")
    throw unknownOperator(`pad by ${of.text("mode")}`, of.call.module);
  const value = of.has("value") ? of.number("value") : 0;
  return graph.node("Pad", [
    of.value("self"),
    graph.constant([...before, ...after], "int64"),
    graph.scalar(value, self.dtype),
  ]);
};

const scaledDotProduct: Translate = (of) => {
  const [q, k, v] = [of.tensor("query"), of.tensor("key"), of.tensor("value")];
  const given = of.has("attn_mask") ? of.tensor("attn_mask") : undefined;
  const width = q.shape.at(-1);
  return attention(of.graph, {
    q,
    k,
    v,
    mask: given?.dtype === "bool" ? given : undefined,
    bias: given?.dtype === "bool" ? undefined : given,
    causal: of.number("is_causal") !== 0,
    window: 0,
    scale: of.has("scale") ? of.number("scale") : 1 / Math.sqrt(width as number),
  });
};

const ownAttention: Translate = (of) =>
  attention(of.graph, {
    q: of.tensor("q"),
    k: of.tensor("k"),
    v: of.tensor("v"),
    mask: of.has("mask") ? of.tensor("mask") : undefined,
    bias: of.has("bias") ? of.tensor("bias") : undefined,
    causal: of.number("causal") !== 0,
    window: of.has("window") ? of.number("window") : 0,
    scale: of.number("scale"),
  });

/** Operators of libtorch with one translation. */
function aten(translate: Translate, ...names: readonly string[]): Readonly<Record<string, Translate>> {
  return Object.fromEntries(names.map((name) => [`aten::${name}`, translate]));
}

/** Operators on a tensor, and a tensor or a number. */
function ofBoth(name: string, translate: Translate): Readonly<Record<string, Translate>> {
  return aten(translate, `${name}.Tensor`, `${name}.Scalar`);
}

/** Operators with the name of ONNX's, in lower case. */
// biome-ignore format: a list
const sameNames = [
  "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin",
  "Sqrt", "Tanh",
];

/** How an operator of libtorch, or of Troupe's own kernels, is said in ONNX. */
const translations: Readonly<Record<string, Translate>> = {
  ...Object.assign({}, ...sameNames.map((name) => aten(unary(name), name.toLowerCase()))),
  ...aten(same, "contiguous", "clone", "detach", "alias"),
  ...aten(reshaped, "view", "view_as", "reshape", "reshape_as", "flatten.using_ints", "unflatten.int"),
  ...aten(reshaped, "squeeze.dim", "squeeze"),
  ...aten(expanded, "expand", "expand_as", "broadcast_to"),
  ...aten((of) => of.as("self"), "to.dtype", "type_as"),
  ...aten(filled(0), "zeros", "zeros_like", "zero"),
  ...aten(filled(1), "ones", "ones_like"),
  ...aten(filled("fill_value"), "full", "full_like"),
  ...aten(split, "split.Tensor", "split.sizes", "chunk"),
  ...aten(padded, "pad", "constant_pad_nd"),
  ...aten(clamped, "clamp", "clamp_min", "clamp_max"),
  ...aten(where, "where.self", "where.ScalarOther"),
  ...aten(floorDivided, "floor_divide.Scalar", "floor_divide"),
  ...aten(matmul("mat2"), "mm", "bmm"),
  ...aten(binary("Max"), "maximum"),
  ...aten(binary("Min"), "minimum"),
  ...aten(binary("Pow", "exponent"), "pow.Tensor_Tensor", "pow.Tensor_Scalar"),
  ...ofBoth("add", sum("Add")),
  ...ofBoth("sub", sum("Sub")),
  ...ofBoth("rsub", sum("Sub", true)),
  ...ofBoth("mul", binary("Mul")),
  ...ofBoth("div", binary("Div")),
  ...ofBoth("remainder", remainder),
  ...ofBoth("masked_fill", masked),
  ...ofBoth("eq", compare("Equal")),
  ...ofBoth("ne", (of) => of.graph.node("Not", [compare("Equal")(of) as string])),
  ...ofBoth("lt", compare("Less")),
  ...ofBoth("le", compare("LessOrEqual")),
  ...ofBoth("gt", compare("Greater")),
  ...ofBoth("ge", compare("GreaterOrEqual")),
  "aten::isnan": (of) => of.graph.node("IsNaN", [of.value("self")]),
  "aten::logical_not": (of) => of.graph.node("Not", [of.as("self", "bool")]),
  "aten::rsqrt": (of) => of.graph.node("Reciprocal", [of.graph.node("Sqrt", [of.value("self")])]),
  "aten::square": (of) => of.graph.node("Mul", [of.value("self"), of.value("self")]),
  "aten::log1p": (of) =>
    of.graph.node("Log", [of.graph.node("Add", [of.value("self"), of.graph.scalar(1, of.result.dtype)])]),
  "aten::log_sigmoid": (of) =>
    of.graph.node("Neg", [of.graph.node("Softplus", [of.graph.node("Neg", [of.value("self")])])]),
  "aten::relu6": (of) =>
    of.graph.node("Clip", [
      of.value("self"),
      of.graph.scalar(0, of.result.dtype),
      of.graph.scalar(6, of.result.dtype),
    ]),
  "aten::gelu": (of) => gelu(of.graph, of.value("self"), of.result.dtype, of.text("approximate")),
  "aten::silu": (of) => silu(of.graph, of.value("self")),
  "aten::softplus": (of) => {
    const beta = of.graph.scalar(of.number("beta"), of.result.dtype);
    const scaled = of.graph.node("Softplus", [of.graph.node("Mul", [of.value("self"), beta])]);
    return of.graph.node("Div", [scaled, beta]);
  },
  "aten::mish": (of) => {
    const soft = of.graph.node("Tanh", [of.graph.node("Softplus", [of.value("self")])]);
    return of.graph.node("Mul", [of.value("self"), soft]);
  },
  "aten::elu": (of) => {
    for (const name of ["scale", "input_scale"]) refuseGiven(of, name, 1);
    return activation("Elu", () => ({ alpha: of.number("alpha") }))(of);
  },
  "aten::leaky_relu": activation("LeakyRelu", (of) => ({ alpha: of.number("negative_slope") })),
  "aten::hardsigmoid": activation("HardSigmoid", () => ({ alpha: 1 / 6, beta: 0.5 })),
  "aten::logical_and": logical("And"),
  "aten::logical_or": logical("Or"),
  "aten::logical_xor": logical("Xor"),
  "aten::bitwise_not": (of) => {
    const { dtype } = of.result;
    if (dtype !== "bool") throw unknownOperator(`bitwise_not of ${dtype}`, of.call.module);
    return of.graph.node("Not", [of.value("self")]);
  },
  "aten::sum.dim_IntList": reduced("ReduceSum"),
  "aten::mean.dim": reduced("ReduceMean"),
  "aten::amax": reduced("ReduceMax"),
  "aten::amin": reduced("ReduceMin"),
  "aten::logsumexp": reduced("ReduceLogSumExp"),
  "aten::prod.dim_int": (of) =>
    of.graph.reduce("ReduceProd", of.as("self"), [of.number("dim")], of.number("keepdim") !== 0),
  "aten::max.dim": extreme("ReduceMax", "ArgMax"),
  "aten::min.dim": extreme("ReduceMin", "ArgMin"),
  "aten::argmax": indexOf("ArgMax"),
  "aten::argmin": indexOf("ArgMin"),
  "aten::linalg_vector_norm": (of) => {
    const ord = of.number("ord");
    if (ord !== 1 && ord !== 2) throw unknownOperator(`linalg_vector_norm with ord ${ord}`, of.call.module);
    return reduced(ord === 2 ? "ReduceL2" : "ReduceL1")(of);
  },
  "aten::cumsum": (of) =>
    of.graph.node("CumSum", [of.as("self"), of.graph.scalar(of.dim("dim", of.result.shape.length), "int64")]),
  "aten::softmax.int": (of) => softmax(of, "Softmax"),
  "aten::log_softmax.int": (of) => softmax(of, "LogSoftmax"),
  "aten::matmul": matmul("other"),
  "aten::addmm": (of) => {
    const [beta, alpha] = [of.number("beta"), of.number("alpha")];
    if (beta !== 1 || alpha !== 1)
      throw unknownOperator(`addmm with beta ${beta} and alpha ${alpha}`, of.call.module);
    const product = of.weights.product(of.value("mat1"), of.tensor("mat2"), false);
    return of.graph.node("Add", [product, of.value("self")]);
  },
  "aten::linear": (of) => {
    const product = of.weights.product(of.value("input"), of.tensor("weight"), true);
    return of.has("bias") ? of.graph.node("Add", [product, of.value("bias")]) : product;
  },
  "aten::conv1d": convolution(1),
  "aten::conv2d": convolution(2),
  "aten::conv3d": convolution(3),
  "aten::max_pool1d": pooling("MaxPool", 1),
  "aten::max_pool2d": pooling("MaxPool", 2),
  "aten::avg_pool1d": pooling("AveragePool", 1),
  "aten::avg_pool2d": pooling("AveragePool", 2),
  "aten::embedding": (of) => of.weights.rows(of.tensor("weight"), of.value("indices")),
  "aten::layer_norm": (of) => layerNorm(of, of.value("input"), of.sizes("normalized_shape")),
  "aten::group_norm": groupNorm,
  "aten::batch_norm": batchNorm,
  "aten::scaled_dot_product_attention": scaledDotProduct,
  "aten::index_select": (of) =>
    of.graph.node("Gather", [of.value("self"), of.value("index")], { axis: { int: of.number("dim") } }),
  "aten::gather": (of) =>
    of.graph.node("GatherElements", [of.value("self"), of.value("index")], {
      axis: { int: of.number("dim") },
    }),
  "aten::select.int": (of) =>
    of.graph.node("Gather", [of.value("self"), of.graph.sizeScalar(of.size("index"))], {
      axis: { int: of.dim("dim", of.tensor("self").shape.length) },
    }),
  "aten::narrow": narrowed,
  "aten::slice.Tensor": sliced,
  "aten::unfold": unfolded,
  "aten::flip": (of) =>
    of
      .numbers("dims")
      .reduce((value, dim) => of.graph.slice(value, dim, -1, -Number.MAX_SAFE_INTEGER, -1), of.value("self")),
  "aten::tril": (of) => triangle(of, 0),
  "aten::triu": (of) => triangle(of, 1),
  "aten::unsqueeze": (of) => of.graph.unsqueeze(of.value("self"), of.dim("dim", of.result.shape.length)),
  "aten::transpose.int": (of) => {
    const rank = of.result.shape.length;
    return permuted(of, swapped(rank, of.dim("dim0", rank), of.dim("dim1", rank)));
  },
  "aten::t": (of) => (of.result.shape.length < 2 ? of.value("self") : permuted(of, [1, 0])),
  "aten::mT": (of) => {
    const rank = of.result.shape.length;
    return permuted(of, swapped(rank, rank - 2, rank - 1));
  },
  "aten::permute": (of) => permuted(of, of.dims("dims", of.result.shape.length)),
  "aten::repeat": (of) => {
    const { graph } = of;
    const repeats = of.sizes("repeats");
    const { shape } = of.tensor("self");
    const wide = [...Array<number>(repeats.length - shape.length).fill(1), ...shape];
    return graph.node("Tile", [graph.reshape(of.value("self"), shape, wide), graph.sizes(repeats)]);
  },
  "aten::cat": (of) =>
    of.graph.node(
      "Concat",
      of.tensors("tensors").map((tensor) => of.graph.as(tensor, of.result.dtype)),
      { axis: { int: of.number("dim") } },
    ),
  "aten::stack": (of) => {
    const dim = of.dim("dim", of.result.shape.length);
    const parts = of.tensors("tensors").map((tensor) => of.graph.unsqueeze(of.graph.value(tensor), dim));
    return of.graph.node("Concat", parts, { axis: { int: dim } });
  },
  "aten::unbind.int": (of) => {
    const dim = of.dim("dim", of.tensor("self").shape.length);
    return of.call.results.map((_, place) =>
      of.graph.node("Gather", [of.value("self"), of.graph.scalar(place, "int64")], { axis: { int: dim } }),
    );
  },
  "aten::copy": (of) => of.graph.expand(of.as("src"), of.tensor("src").shape, of.result.shape),
  "aten::fill.Scalar": filled("value"),
  "aten::scalar_tensor": filled("s"),
  "aten::arange.start_step": arange,
  "troupe::layer_norm": (of) => layerNorm(of, of.value("x"), of.tensor("weight").shape),
  "troupe::add_layer_norm": (of) => {
    const added = of.graph.node("Add", [of.value("x"), of.value("residual")]);
    return [added, layerNorm(of, added, of.tensor("weight").shape)];
  },
  "troupe::rms_norm": (of) => rmsNorm(of, of.value("x"), of.tensor("x").dtype),
  "troupe::add_rms_norm": (of) => {
    const added = of.graph.node("Add", [of.value("x"), of.value("residual")]);
    return [added, rmsNorm(of, added, of.tensor("x").dtype)];
  },
  "troupe::rotary": (of) => rotary(of.graph, of.tensor("x"), of.tensor("cosines"), of.tensor("sines")),
  "troupe::swiglu": (of) => of.graph.node("Mul", [silu(of.graph, of.value("gate")), of.value("up")]),
  "troupe::bias_gelu": (of) => {
    const biased = of.graph.node("Add", [of.value("x"), of.as("bias")]);
    return gelu(of.graph, biased, of.result.dtype, of.text("approximate"));
  },
  "troupe::attention": ownAttention,
  "troupe::masked_attention": ownAttention,
};

/** The rest of a division, with the divisor's sign. ONNX has it of integers; that of floats has the dividend's sign. */
function remainder(of: Translation): string {
  const { graph } = of;
  const { dtype } = of.result;
  const [self = "", other = ""] = operands(of, dtype);
  if (!floats.includes(dtype)) return graph.node("Mod", [self, other]);
  const rest = graph.node("Mod", [self, other], { fmod: { int: 1 } });
  const isOther = graph.node("Less", [graph.node("Mul", [rest, other]), graph.scalar(0, dtype)]);
  return graph.node("Where", [isOther, graph.node("Add", [rest, other]), rest]);
}

function floorDivided(of: Translation): string {
  const { graph } = of;
  const [self = "", other = ""] = operands(of, of.result.dtype);
  const { dtype } = of.result;
  if (floats.includes(dtype)) return graph.node("Floor", [graph.node("Div", [self, other])]);
  // ONNX's Div of integers rounds towards zero.
  const rest = graph.node("Mod", [self, other]);
  return graph.node("Div", [graph.node("Sub", [self, rest]), other]);
}

/** Operators whose results share memory with their first argument. */
const views =
  /^aten::(view|view_as|reshape|reshape_as|flatten|unflatten|squeeze|unsqueeze|transpose|t|mT|permute|expand|expand_as|broadcast_to|narrow|select|slice|chunk|split|unbind|detach|alias|contiguous|to|unfold|diagonal|movedim)(\.|$)/;

/** Whether an operator's results may be views. */
export function makesViews(operator: string): boolean {
  return views.test(operator);
}

/** Whether an operator changes its first argument. */
export function isInPlace(operator: string): boolean {
  return /^\w+::\w*[a-z0-9]_(\.|$)/.test(operator);
}

/**
 * Makes the nodes of a call.
 * @returns the values of its results
 * @throws {TroupeError} `EXPORT` for an operator that ONNX lacks, with the module that calls it
 */
export function translate(graph: GraphBuilder, weights: Weights, call: GraphCall): readonly string[] {
  const name = isInPlace(call.operator) ? call.operator.replace(/_(?=\.|$)/, "") : call.operator;
  const known = translations[name];
  if (known === undefined) throw unknownOperator(call.operator, call.module);
  const made = known(new Translation(graph, weights, call));
  return typeof made === "string" ? [made] : made;
}
