import { TroupeError } from "../errors.ts";
import type { TensorHandle } from "./handle.ts";
import { frame, native } from "./native.ts";

export { frame } from "./native.ts";

/** Runs an operator on what the frame holds. @returns its first result: a handle, a number, or the count of a list */
export let call = (operator: number): number => {
  call = native().call;
  return call(operator);
};

const interned = new Map<string, number>();

/** The number that stands for a string argument. Kept for ever: strings of operators are few and constant. */
export function intern(text: string): number {
  let number = interned.get(text);
  if (number === undefined) {
    number = native().intern(text);
    interned.set(text, number);
  }
  return number;
}

/** Writes a list of numbers, or one number that stands for all. @returns where the next argument goes */
export function putNumbers(at: number, values: number | readonly number[]): number {
  if (typeof values === "number") {
    frame[at] = 1;
    frame[at + 1] = values;
    return at + 2;
  }
  let next = putLength(at, values.length, 1);
  for (const value of values) frame[next++] = value;
  return next;
}

/** The same for a list that may be absent. */
export function putOptionalNumbers(at: number, values: number | readonly number[] | undefined): number {
  frame[at] = values === undefined ? 0 : 1;
  return values === undefined ? at + 1 : putNumbers(at + 1, values);
}

/** Writes a list of tensors. @returns where the next argument goes */
export function putTensors(at: number, tensors: readonly TensorHandle[]): number {
  let next = putLength(at, tensors.length, 1);
  for (const tensor of tensors) frame[next++] = tensor.handle;
  return next;
}

/** The same for a list with gaps. */
export function putOptionalTensors(at: number, tensors: readonly (TensorHandle | undefined)[]): number {
  let next = putLength(at, tensors.length, 2);
  for (const tensor of tensors) {
    frame[next++] = tensor === undefined ? 0 : 1;
    frame[next++] = tensor === undefined ? 0 : tensor.handle;
  }
  return next;
}

/** Room that fixed arguments behind a list may still need. */
const reserve = 32;

function putLength(at: number, length: number, width: number): number {
  if (at + 1 + length * width + reserve > frame.length) {
    throw new TroupeError(
      "TENSOR_FRAME_FULL",
      {
        where: "tensor",
        expected: `argument lists of at most ${frame.length} numbers together`,
        got: `one of ${length} entries`,
        hint: "split it",
      },
      { fields: { length } },
    );
  }
  frame[at] = length;
  return at + 1;
}
