import { TroupeError } from "../../errors/index.ts";
import type { TensorHandle } from "./handle.ts";
import { frame, native } from "./native.ts";

export { frame } from "./native.ts";

/** Runs an operator on the arguments in the frame. @returns its first result: a handle, a number, or the length of a list */
export let call = (operator: number): number => {
  call = native().call;
  return call(operator);
};

/**
 * Makes {@link call} go through `around`, which gets the operator's number and runs it by `run`.
 * @returns a function that ends this
 */
export function aroundCalls(
  around: (operator: number, run: (operator: number) => number) => number,
): () => void {
  const before = call;
  const run = native().call;
  call = (operator) => around(operator, run);
  return () => {
    call = before;
  };
}

const interned = new Map<string, number>();

/**
 * Returns the number that stands for a string argument. Numbers are kept forever, because operators' strings are few and
 * constant.
 */
export function intern(text: string): number {
  let number = interned.get(text);
  if (number === undefined) {
    number = native().intern(text);
    interned.set(text, number);
  }
  return number;
}

/** Returns the string that a number of {@link intern} stands for. */
export function internedText(number: number): string | undefined {
  for (const [text, of] of interned) if (of === number) return text;
  return undefined;
}

/**
 * Returns the handle of an operand.
 * @param argument - name of the argument, for errors
 * @throws {TroupeError} `TENSOR_ARGUMENT` if it is not a tensor
 */
export function handleOf(operand: TensorHandle, op: string, argument: string): number {
  return operand?.handle ?? refuse(op, `${argument} to be a tensor`, operand);
}

/**
 * Writes a list of numbers; a single number is a list of one.
 * @returns the position of the next argument
 * @throws {TroupeError} `TENSOR_ARGUMENT` if it is neither
 */
export function putNumbers(
  at: number,
  values: number | readonly number[],
  op: string,
  argument: string,
): number {
  if (typeof values === "number") {
    frame[at] = 1;
    frame[at + 1] = values;
    return at + 2;
  }
  let next = putLength(at, values?.length ?? refuse(op, `${argument} to be a list of numbers`, values), 1);
  for (const value of values) frame[next++] = value;
  return next;
}

/** Writes a list of numbers that may be absent; see {@link putNumbers}. */
export function putOptionalNumbers(
  at: number,
  values: number | readonly number[] | undefined,
  op: string,
  argument: string,
): number {
  frame[at] = values === undefined ? 0 : 1;
  return values === undefined ? at + 1 : putNumbers(at + 1, values, op, argument);
}

/**
 * Writes a list of tensors.
 * @returns the position of the next argument
 * @throws {TroupeError} `TENSOR_ARGUMENT` if it is not a list of tensors
 */
export function putTensors(
  at: number,
  tensors: readonly TensorHandle[],
  op: string,
  argument: string,
): number {
  let next = putLength(at, tensors?.length ?? refuse(op, `${argument} to be a list of tensors`, tensors), 1);
  for (const tensor of tensors)
    frame[next++] = tensor?.handle ?? refuse(op, `each of ${argument} to be a tensor`, tensor);
  return next;
}

/** Writes a list of tensors with gaps; see {@link putTensors}. */
export function putOptionalTensors(
  at: number,
  tensors: readonly (TensorHandle | undefined)[],
  op: string,
  argument: string,
): number {
  let next = putLength(at, tensors?.length ?? refuse(op, `${argument} to be a list of tensors`, tensors), 2);
  for (const tensor of tensors) {
    frame[next++] = tensor === undefined ? 0 : 1;
    frame[next++] = tensor === undefined ? 0 : handleOf(tensor, op, argument);
  }
  return next;
}

/** Throws for a value that is not a tensor: a misspelt property, a result that was not returned, an array of numbers. */
function refuse(op: string, expected: string, got: unknown): never {
  throw new TroupeError("TENSOR_ARGUMENT", {
    where: op,
    expected,
    got: described(got),
    hint: hintOn(got),
    fields: { op },
  });
}

function hintOn(got: unknown): string | undefined {
  if (Array.isArray(got)) return "tensor(numbers) makes one";
  // A parameter or a buffer of a module. Do not read its tensor, whose memory may not be bound yet.
  return typeof got === "object" && got !== null && "tensor" in got ? "its tensor is .tensor" : undefined;
}

function described(got: unknown): string {
  if (got === undefined || got === null) return String(got);
  if (typeof got !== "object") return `${typeof got} ${String(got).slice(0, 40)}`;
  return `${/^[AEIOU]/.test(got.constructor.name) ? "an" : "a"} ${got.constructor.name}`;
}

/** Room that fixed arguments after a list may need. */
const reserve = 32;

function putLength(at: number, length: number, width: number): number {
  if (at + 1 + length * width + reserve > frame.length)
    throw new TroupeError("TENSOR_FRAME_FULL", {
      where: "tensor",
      expected: `argument lists of at most ${frame.length} numbers together`,
      got: `one of ${length} entries`,
      hint: "split it",
      fields: { length },
    });
  frame[at] = length;
  return at + 1;
}
