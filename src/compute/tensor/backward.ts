import { TroupeError } from "../../errors/index.ts";
import { putOptionalTensors, putTensors } from "./frame.ts";
import type { TensorHandle } from "./handle.ts";
import { native } from "./native.ts";

/** Options of {@link backward}. */
export interface BackwardOptions {
  /** Keeps the graph for another backward. Default: false, its memory is freed during backward. */
  readonly retainGraph?: boolean;
  /** The only leaves to receive gradients. Default: all. */
  readonly inputs?: readonly TensorHandle[];
}

/** Number of `refuseBackward` in force in this thread. */
let numRefusals = 0;

/**
 * Makes {@link backward} throw in this thread until the result is disposed, because the run makes the backward pass itself.
 * `grad` may be called.
 */
export function refuseBackward(): Disposable {
  numRefusals += 1;
  return { [Symbol.dispose]: () => void numRefusals-- };
}

/**
 * Adds d(Σ outputs · gradients)/d(leaf) to `.grad` of the leaves, in this thread, before it returns.
 * @param outputs - one or several tensors that require grad
 * @param gradients - one for each output, of its shape; may be left out for outputs of one element
 * @throws {TroupeError} `BACKWARD_WITHIN` while `refuseBackward` is in force; `TENSOR_OP_FAILED` if libtorch refuses
 */
export function backward(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients?: TensorHandle | readonly (TensorHandle | undefined)[],
  options: BackwardOptions = {},
): void {
  if (numRefusals > 0)
    throw new TroupeError("BACKWARD_WITHIN", {
      where: "backward",
      expected: "no call in a forward whose gradients the run computes",
      got: "one",
      hint: "leave it out; for gradients inside a forward use grad(outputs, inputs)",
    });
  putOperands(outputs, gradients, options.inputs ?? []);
  native().backward(options.retainGraph ?? false);
}

/** Writes the operands of the autograd calls to the frame. */
export function putOperands(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients: TensorHandle | readonly (TensorHandle | undefined)[] | undefined,
  inputs: readonly TensorHandle[],
): void {
  let next = putTensors(0, asList(outputs), "backward", "outputs");
  next = putOptionalTensors(next, gradients === undefined ? [] : asList(gradients), "backward", "gradients");
  putTensors(next, inputs, "backward", "inputs");
}

/** Returns a list of one or many. */
export function asList<T extends TensorHandle | undefined>(given: T | readonly T[]): readonly T[] {
  return Array.isArray(given) ? given : [given as T];
}
