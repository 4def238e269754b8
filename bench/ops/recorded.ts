import {
  beginRecording,
  endForward,
  grad,
  improveProgram,
  recordBackward,
  type Tensor,
} from "../../src/compute/tensor/index.ts";

/** @returns the improved program of a body with one result, forward and backward */
export function recorded(
  body: (inputs: readonly Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  upstream: Tensor,
  fast: boolean,
): number {
  const recording = beginRecording(inputs, []);
  const y = body(inputs);
  const refusal = endForward(recording, [y], []);
  const { program } = recordBackward(recording, [upstream], () => grad([y], inputs, [upstream]));
  if (refusal !== "" || typeof program !== "number") throw new Error(`${refusal}${program}`);
  improveProgram(program, fast);
  return program;
}
