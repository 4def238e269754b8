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

/** Who walks back what this thread computes. */
let walker: string | undefined;

/**
 * Runs a body whose result somebody else walks back, which uses its graph up: until it is over {@link backward} is refused in this
 * thread. `grad` gives gradients there too.
 * @param who - in words
 */
export function walkedBackBy<T>(who: string, body: () => T): T {
  const before = walker;
  walker = who;
  try {
    return body();
  } finally {
    walker = before;
  }
}

/**
 * Adds d(Σ outputs · gradients)/d(leaf) to `.grad` of the leaves, in this thread, before it returns.
 * @param outputs - one or several tensors that require grad
 * @param gradients - one for each output, of its shape; may be left out for outputs of one element
 * @throws {TroupeError} `BACKWARD_WITHIN` in a forward that somebody else walks back; what libtorch refuses
 */
export function backward(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients?: TensorHandle | readonly (TensorHandle | undefined)[],
  options: BackwardOptions = {},
): void {
  if (walker !== undefined)
    throw new TroupeError("BACKWARD_WITHIN", {
      where: "backward",
      expected: `to be left to ${walker}, which walks back what is computed here`,
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
