import {
  beginRecording,
  endForward,
  grad,
  improveProgram,
  recordBackward,
  type Tensor,
} from "../../src/compute/tensor/index.ts";

/** Computes one result. */
export type Body = (inputs: readonly Tensor[]) => Tensor;

/** @returns a body's programs, in both modes */
export function programsOf(
  body: Body,
  inputs: readonly Tensor[],
  upstream: Tensor,
): Record<"exact" | "fast", number> {
  return { exact: recorded(body, inputs, upstream, false), fast: recorded(body, inputs, upstream, true) };
}

/** @returns the improved program of a body with one result, forward and backward */
export function recorded(body: Body, inputs: readonly Tensor[], upstream: Tensor, fast: boolean): number {
  const recording = beginRecording(inputs, []);
  const y = body(inputs);
  const refusal = endForward(recording, [y], []);
  const leaves = inputs.filter(({ requiresGrad }) => requiresGrad);
  const { program } = recordBackward(recording, [upstream], () => grad([y], leaves, [upstream]));
  if (refusal !== "" || typeof program !== "number") throw new Error(`${refusal}${program}`);
  improveProgram(program, fast);
  return program;
}
