import { TroupeError } from "../../errors/index.ts";
import { putOptionalTensors, putTensors } from "./frame.ts";
import type { TensorHandle } from "./handle.ts";
import { native } from "./native.ts";

/** Options of {@link backward}. */
export interface BackwardOptions {
  /** Keeps the graph for another backward. False by default: its memory is freed during backward. */
  readonly retainGraph?: boolean;
  /** The only leaves to receive gradients; all by default. */
  readonly inputs?: readonly TensorHandle[];
}

/** The owner of the backward pass of what this thread computes now. */
let tapeOwner: string | undefined;

/**
 * Runs `body` while the block tape owns its backward pass; calling {@link backward} inside throws. `grad` may be called.
 * @param owner - name of the tape's owner, for the error
 */
export function withTapeBackward<T>(owner: string, body: () => T): T {
  const before = tapeOwner;
  tapeOwner = owner;
  try {
    return body();
  } finally {
    tapeOwner = before;
  }
}

/**
 * Adds d(Σ outputs · gradients)/d(leaf) to `.grad` of the leaves, in this thread, before it returns.
 * @param outputs - one or several tensors that require grad
 * @param gradients - one for each output, of its shape; may be left out for outputs of one element
 * @throws {TroupeError} `BACKWARD_WITHIN` inside {@link withTapeBackward}; `TENSOR_OP_FAILED` if libtorch refuses
 */
export function backward(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients?: TensorHandle | readonly (TensorHandle | undefined)[],
  options: BackwardOptions = {},
): void {
  if (tapeOwner !== undefined)
    throw new TroupeError("BACKWARD_WITHIN", {
      where: "backward",
      expected: `no call in a forward whose gradients ${tapeOwner} computes`,
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
