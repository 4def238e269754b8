import { arrayFor, type DType, dtypeOfCode, type TypedArray } from "./dtype.ts";
import { aroundCalls, frame, internedText } from "./frame.ts";
import { native } from "./native.ts";
import { numelOf } from "./numel.ts";
import { schemas } from "./schemas.generated.ts";
import { retaining, scope } from "./scope.ts";

/** A tensor in a trace. Operators in place and `to` without a change give an old tensor a new number. */
export interface TracedTensor {
  readonly id: number;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** A tensor that no operator of the trace made. */
export interface ForeignTensor extends TracedTensor {
  /** Its handle. */
  readonly handle: number;
  /** Copies its elements in row-major order. */
  read(): TypedArray;
}

/** An argument of a call; undefined where there is none. */
export type TracedArgument =
  | number
  | string
  | TracedTensor
  | readonly (number | TracedTensor | undefined)[]
  | undefined;

/** One call of an operator. */
export interface TracedCall {
  /** Name and overload in libtorch, such as `aten::add.Tensor`. */
  readonly operator: string;
  /** By the schema's names. Booleans are 0 or 1, dtypes are their names. */
  readonly arguments: Readonly<Record<string, TracedArgument>>;
  readonly results: readonly TracedTensor[];
}

/** Sees the calls of {@link traceOperators}, in order. */
export interface TraceObserver {
  /** A tensor from outside is an operand for the first time. Its values may be read now. */
  foreign(tensor: ForeignTensor): void;
  called(call: TracedCall): void;
}

/**
 * Runs `body` and reports each operator that it calls in this thread. No tensor of a scope is released before the end.
 * @param body - gets a function that returns the traced tensor of a handle
 */
export function traceOperators<T>(
  observer: TraceObserver,
  body: (tracedOf: (tensor: { readonly handle: number }) => TracedTensor) => T,
): T {
  const tensors = new Map<number, TracedTensor>();
  let numTensors = 0;
  const facts = (handle: number): TracedTensor => {
    const dtype = dtypeOfCode(native().describe(handle));
    return { id: numTensors++, dtype, shape: Array.from(frame.subarray(1, 1 + (frame[0] ?? 0))) };
  };
  const made = (handle: number): TracedTensor => {
    const tensor = facts(handle);
    tensors.set(handle, tensor);
    return tensor;
  };
  const operand = (handle: number): TracedTensor => {
    const known = tensors.get(handle);
    if (known !== undefined) return known;
    const tensor = made(handle);
    const read = () => {
      const values = arrayFor(tensor.dtype, numelOf(tensor.shape));
      native().toTypedArray(handle, values);
      return values;
    };
    observer.foreign({ ...tensor, handle, read });
    return tensor;
  };
  return retaining(() => {
    const end = aroundCalls((index, run) => {
      const schema = schemaAt(index);
      const numbers = frame.slice();
      const { values, length } = readArguments(schema, numbers, operand);
      frame.set(numbers.subarray(0, length));
      const first = run(index);
      const returned = frame.slice(0, schema.returns === "list" ? 1 + first : Number(schema.returns) || 0);
      const handles =
        schema.returns === "self"
          ? [numbers[0] ?? 0]
          : schema.returns === "list"
            ? [...returned.subarray(1)]
            : schema.returns === "value"
              ? []
              : [...returned];
      observer.called({ operator: schema.operator, arguments: values, results: handles.map(made) });
      frame.set(returned);
      return first;
    });
    try {
      return scope(() => body(({ handle }) => operand(handle)));
    } finally {
      end();
    }
  });
}

interface Argument {
  readonly name: string;
  readonly type: string;
  readonly isList: boolean;
  readonly isOptional: boolean;
  readonly hasGaps: boolean;
}

interface Schema {
  readonly operator: string;
  readonly arguments: readonly Argument[];
  /** The number of tensors; a list of them; the first argument, changed; or a number. */
  readonly returns: number | "list" | "self" | "value";
}

const parsed = new Map<number, Schema>();

function schemaAt(index: number): Schema {
  const known = parsed.get(index);
  if (known !== undefined) return known;
  const [, operator = "", inside = "", returns = ""] =
    /^([\w:.]+)\((.*)\) -> (.*)$/.exec(schemas[index] ?? "") ?? [];
  const schema = {
    operator,
    arguments: inside
      .replaceAll(/\([^)]*\)/g, "")
      .split(/, (?![^[]*\])/)
      .filter((text) => text !== "*" && text !== "")
      .map(argumentOf),
    returns: returnsOf(returns),
  };
  parsed.set(index, schema);
  return schema;
}

function argumentOf(text: string): Argument {
  const [, type = "", inner, list, outer, name = ""] = /^(\w+)(\?)?(\[\d*\])?(\?)? (\w+)/.exec(text) ?? [];
  const isList = list !== undefined;
  return {
    name,
    type,
    isList,
    isOptional: (isList ? outer : inner) !== undefined,
    hasGaps: isList && inner !== undefined,
  };
}

function returnsOf(text: string): Schema["returns"] {
  if (text.includes("!")) return "self";
  if (/^Tensor(\([^)]*\))?\[\]$/.test(text)) return "list";
  return (text.match(/Tensor/g) ?? []).length || "value";
}

function readArguments(
  schema: Schema,
  numbers: Float64Array,
  tensorOf: (handle: number) => TracedTensor,
): { readonly values: Record<string, TracedArgument>; readonly length: number } {
  let at = 0;
  const next = () => numbers[at++] ?? 0;
  const one = (type: string): number | string | TracedTensor => {
    const number = next();
    if (type === "Tensor") return tensorOf(number);
    if (type === "ScalarType") return dtypeOfCode(number);
    return type === "str" ? (internedText(number) ?? "") : number;
  };
  const read = ({ type, isList, isOptional, hasGaps }: Argument): TracedArgument => {
    if (isOptional && next() === 0) {
      if (!isList) next();
      return undefined;
    }
    if (!isList) return one(type);
    return Array.from({ length: next() }, () => {
      if (!hasGaps || next() !== 0) return one(type) as number | TracedTensor;
      next();
      return undefined;
    });
  };
  const values = Object.fromEntries(schema.arguments.map((argument) => [argument.name, read(argument)]));
  return { values, length: at };
}
