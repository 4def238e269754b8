import { inspect } from "node:util";
import { noGrad } from "../autograd.ts";
import { numelOf } from "../numel.ts";
import * as ops from "../ops.generated.ts";
import { scope } from "../scope.ts";
import { Tensor } from "../tensor.ts";
import { standardDeviation, statisticsOf } from "./statistics.ts";

/**
 * Most elements of a tensor that is shown completely; of a larger one, the first and last {@link EDGE} along each dim are
 * shown, as in torch.
 */
const ALL_SHOWN = 1000;
const EDGE = 3;

/** Most elements of a tensor whose mean and deviation are computed, which takes about a millisecond. */
const MEASURED = 1 << 20;

/**
 * Describes a tensor for `console.log`: dtype, shape and device, mean and unbiased deviation, and the values, of large
 * tensors those at the edges. Showing costs little and never throws: a tensor of more than a million elements has no mean,
 * and one that cannot be read (disposed, without memory) has no values.
 */
function showTensor(tensor: Tensor): string {
  const name = tensor.toString();
  if (tensor.disposed || tensor.device === "meta") return name;
  try {
    return noGrad(() => scope(() => `${name} ${tensor.device}${figuresOf(tensor)}\n${valuesOf(tensor)}`));
  } catch {
    return name; // its memory is offloaded
  }
}

function figuresOf(tensor: Tensor): string {
  if (tensor.numel < 2 || tensor.numel > MEASURED || tensor.dtype === "bool") return "";
  const statistics = statisticsOf(tensor);
  return ` mean ${short(statistics.mean)} std ${short(standardDeviation(statistics))}`;
}

function valuesOf(tensor: Tensor): string {
  const isCut = tensor.numel > ALL_SHOWN;
  const shown = isCut ? edgesOf(tensor) : tensor;
  const isWide = ["bfloat16", "float16"].includes(shown.dtype);
  const values = [...(isWide ? shown.to("float32") : shown).toTypedArray()];
  const texts = tensor.dtype.includes("float") ? floats(values.map(Number)) : values.map(String);
  const width = Math.max(0, ...texts.map(({ length }) => length));
  const cut = tensor.shape.map((size) => isCut && size > 2 * EDGE);
  return nested(
    texts.map((text) => text.padStart(width)),
    shown.shape,
    cut,
    0,
  );
}

/** Returns the first and last elements along each dim that is longer than both. */
function edgesOf(tensor: Tensor): Tensor {
  return tensor.shape.reduce(
    (left, size, dim) =>
      size > 2 * EDGE ? ops.cat([left.narrow(dim, 0, EDGE), left.narrow(dim, size - EDGE, EDGE)], dim) : left,
    tensor,
  );
}

/** Writes rows in brackets, one per line; `cut` says in which dims the middle is left out. */
function nested(
  texts: readonly string[],
  shape: readonly number[],
  cut: readonly boolean[],
  dim: number,
): string {
  const [size, ...rest] = shape;
  if (size === undefined) return texts[0] ?? "";
  const each = numelOf(rest);
  const parts = Array.from({ length: size }, (_, index) =>
    nested(texts.slice(index * each, (index + 1) * each), rest, cut, dim + 1),
  );
  if (cut[dim]) parts.splice(EDGE, 0, "…");
  const between = rest.length === 0 ? ", " : `,${"\n".repeat(rest.length)}${" ".repeat(dim + 1)}`;
  return `[${parts.join(between)}]`;
}

/** Formats floats in one form for all, by torch's rule: whole numbers, four decimals, or powers of ten. */
function floats(values: readonly number[]): string[] {
  const finite = values.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs);
  const [largest, smallest] = [Math.max(0, ...finite), Math.min(Infinity, ...finite)];
  if (values.every((value) => !Number.isFinite(value) || Number.isInteger(value)) && largest < 1e8)
    return values.map((value) => (Number.isFinite(value) ? `${value}.` : other(value)));
  const byPowers = largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000;
  const form = (value: number) => (byPowers ? value.toExponential(4) : value.toFixed(4));
  return values.map((value) => (Number.isFinite(value) ? form(value) : other(value)));
}

const other = (value: number): string => (Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf");

function short(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : other(value);
}

Object.defineProperty(Tensor.prototype, inspect.custom, {
  value: function show(this: Tensor): string {
    return showTensor(this);
  },
  enumerable: false,
});
