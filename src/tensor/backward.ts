import type { TensorHandle } from "./handle.ts";
import { frame, native } from "./native.ts";

/** How {@link backward} treats the graph. */
export interface BackwardOptions {
  /** Keeps the graph for another backward; false by default: its memory is freed as it is walked. */
  readonly retainGraph?: boolean;
  /** The only leaves to receive gradients; all by default. */
  readonly inputs?: readonly TensorHandle[];
}

/**
 * Adds d(Σ outputs · gradients)/d(leaf) to `.grad` of the leaves, in this thread, before it returns.
 * @param outputs - one or several tensors that require grad
 * @param gradients - one for each output, of its shape; may be left out for outputs of one element
 */
export function backward(
  outputs: TensorHandle | readonly TensorHandle[],
  gradients?: TensorHandle | readonly (TensorHandle | undefined)[],
  options: BackwardOptions = {},
): void {
  let next = putHandles(0, asList(outputs));
  next = putHandles(next, gradients === undefined ? [] : asList(gradients));
  putHandles(next, options.inputs ?? []);
  native().backward(options.retainGraph ?? false);
}

/** Writes a list of tensors for the autograd calls: its length and its handles, 0 for none. @returns the next free place */
export function putHandles(at: number, tensors: readonly (TensorHandle | undefined)[]): number {
  frame[at] = tensors.length;
  tensors.forEach((tensor, index) => {
    frame[at + 1 + index] = tensor?.handle ?? 0;
  });
  return at + 1 + tensors.length;
}

/** A list of what was given, one or many. */
export function asList<T extends TensorHandle | undefined>(given: T | readonly T[]): readonly T[] {
  return Array.isArray(given) ? given : [given as T];
}
