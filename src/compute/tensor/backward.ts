import { TroupeError } from "../../errors/index.ts";
import { putOptionalTensors, putTensors } from "./frame.ts";
import type { TensorHandle } from "./handle.ts";
import { native } from "./native.ts";

/** How {@link backward} treats the graph. */
export interface BackwardOptions {
  /** Keeps the graph for another backward; false by default: its memory is freed as it is walked. */
  readonly retainGraph?: boolean;
  /** The only leaves to receive gradients; all by default. */
  readonly inputs?: readonly TensorHandle[];
}

/** How many {@link refuseBackward} are in force in this thread. */
let numRefusals = 0;

/**
 * Has {@link backward} throw in this thread, until what is returned is disposed: the run makes the backward pass of what is
 * computed meanwhile, and uses its graph up. `grad` gives gradients there too.
 */
export function refuseBackward(): Disposable {
  numRefusals += 1;
  return { [Symbol.dispose]: () => void numRefusals-- };
}

/**
 * Adds d(Σ outputs · gradients)/d(leaf) to `.grad` of the leaves, in this thread, before it returns.
 * @param outputs - one or several tensors that require grad
 * @param gradients - one for each output, of its shape; may be left out for outputs of one element
 * @throws {TroupeError} `BACKWARD_WITHIN` in a forward whose backward pass the run makes; what libtorch refuses
 */
export function backward(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients?: TensorHandle | readonly (TensorHandle | undefined)[],
  options: BackwardOptions = {},
): void {
  if (numRefusals > 0)
    throw new TroupeError("BACKWARD_WITHIN", {
      where: "backward",
      expected: "to be left to the run, which walks back what is computed here",
      got: "a call of its own",
      hint: "leave it out; gradients that a forward needs itself are given by grad(outputs, inputs)",
    });
  putOperands(outputs, gradients, options.inputs ?? []);
  native().backward(options.retainGraph ?? false);
}

/** Writes what the autograd calls read from the frame. */
export function putOperands(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients: TensorHandle | readonly (TensorHandle | undefined)[] | undefined,
  inputs: readonly TensorHandle[],
): void {
  let next = putTensors(0, asList(outputs), "backward", "outputs");
  next = putOptionalTensors(next, gradients === undefined ? [] : asList(gradients), "backward", "gradients");
  putTensors(next, inputs, "backward", "inputs");
}

/** A list of what was given, one or many. */
export function asList<T extends TensorHandle | undefined>(given: T | readonly T[]): readonly T[] {
  return Array.isArray(given) ? given : [given as T];
}
