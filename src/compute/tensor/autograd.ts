import { asList, putOperands } from "./backward.ts";
import { frame, native } from "./native.ts";
import { adopt, type Tensor } from "./tensor.ts";

/** Options of {@link grad}. */
export interface GradOptions {
  /** Keeps the graph for another backward. Default: false. */
  readonly retainGraph?: boolean;
  /** Returns null for inputs that the outputs do not depend on, instead of throwing. Default: false. */
  readonly allowUnused?: boolean;
  /**
   * The inputs from this index on may get sparse gradients on the host, if they are tables of vectors: those rows that were looked
   * up. Default: none.
   */
  readonly firstByRows?: number;
}

/**
 * Returns the gradients d(Σ outputs · gradients)/d(input); no `.grad` changes.
 * @param gradients - one for each output, of its shape; may be left out for outputs of one element
 * @returns one tensor per input
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  gradients?: Tensor | readonly (Tensor | undefined)[],
  options: GradOptions = {},
): (Tensor | null)[] {
  const wanted = asList(inputs);
  putOperands(outputs, gradients, wanted);
  const { retainGraph = false, allowUnused = false, firstByRows = wanted.length } = options;
  native().grad(retainGraph, allowUnused, firstByRows);
  const handles = Array.from(frame.subarray(0, wanted.length));
  return handles.map((handle) => (handle === 0 ? null : adopt(handle)));
}

/** Runs `body` without recording for autograd, in this thread. */
export function noGrad<T>(body: () => T): T {
  return withGrad(false, body);
}

/** Runs `body` with recording for autograd, also inside {@link noGrad}; recompute needs it. */
export function enableGrad<T>(body: () => T): T {
  return withGrad(true, body);
}

/** Whether autograd records in this thread now. */
export function gradEnabled(): boolean {
  return native().gradEnabled();
}

function withGrad<T>(enabled: boolean, body: () => T): T {
  const before = native().setGradEnabled(enabled);
  try {
    return body();
  } finally {
    native().setGradEnabled(before);
  }
}
