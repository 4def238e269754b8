import { type DType, empty, keep } from "../../tensor/index.ts";
import { initializeSlice, type ParameterSpec } from "./initializer.ts";
import type { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

/** What a parameter is, as plain data. */
export function specOf(name: string, { shape, split, dtype, init }: Parameter): ParameterSpec {
  return split === undefined ? { name, shape, dtype, init } : { name, shape, split, dtype, init };
}

/**
 * Gives every parameter and buffer memory of its own on this device, filled with its initial values, and asks for gradients
 * of the parameters that are trainable.
 * For one device: tests and scripts. In a runtime the parallel engine binds views of flat blocks instead.
 * @param root - the tensors belong to it from then on; {@link dematerialize} releases them
 * @param options.seed - same seed and names, same bits
 * @param options.dtype - instead of each parameter's own
 */
export function materialize(root: Module, options: { seed: number; dtype?: DType }): void {
  for (const [name, parameter] of root.namedState()) {
    const isFloat = parameter.dtype.includes("float");
    give(name, parameter, options.seed, isFloat ? (options.dtype ?? parameter.dtype) : parameter.dtype);
  }
  materializeTransient(root, options.seed);
}

/** Gives memory to the buffers that no checkpoint has: whoever runs the model, on each rank its own. */
export function materializeTransient(root: Module, seed: number): void {
  for (const [name, buffer] of root.namedBuffers())
    if (!buffer.persistent) give(name, buffer, seed, buffer.dtype);
}

/** Releases the memory of every parameter and buffer, at once; computing with the model throws from then on. */
export function dematerialize(root: Module): void {
  for (const parameter of root.namedState().values()) parameter.unbind()?.dispose();
  for (const buffer of root.namedBuffers().values()) buffer.unbind()?.dispose();
}

function give(name: string, parameter: Parameter, seed: number, dtype: DType): void {
  const tensor = keep(empty(parameter.shape, { dtype }));
  initializeSlice(tensor, specOf(name, parameter), seed, 0);
  parameter.bind(parameter.trainable ? tensor.requiresGrad_() : tensor);
}
