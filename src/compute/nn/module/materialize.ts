import { type DType, empty, keep } from "../../tensor/index.ts";
import { initializeSlice, type ParameterSpec } from "./initializer.ts";
import type { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

/** Describes a parameter as plain data. */
export function specOf(name: string, { shape, split, dtype, init }: Parameter): ParameterSpec {
  return split === undefined ? { name, shape, dtype, init } : { name, shape, split, dtype, init };
}

/**
 * Allocates memory for every parameter and buffer on this device, fills it with initial values, and requires gradients of
 * trainable parameters. For tests and scripts on one device: in a runtime the parallel engine binds views of flat blocks instead.
 * @param root - owns the tensors; {@link dematerialize} releases them
 * @param options.seed - same seed and names, same bits
 * @param options.dtype - dtype of float parameters, instead of their own
 */
export function materialize(root: Module, options: { seed: number; dtype?: DType }): void {
  for (const [name, parameter] of root.namedState()) {
    const isFloat = parameter.dtype.includes("float");
    give(name, parameter, options.seed, isFloat ? (options.dtype ?? parameter.dtype) : parameter.dtype);
  }
  materializeTransient(root, options.seed);
}

/** Allocates and initializes the buffers that are not persistent, on each rank its own. */
export function materializeTransient(root: Module, seed: number): void {
  for (const [name, buffer] of root.namedBuffers())
    if (!buffer.persistent) give(name, buffer, seed, buffer.dtype);
}

/** Releases the memory of every parameter and buffer. Computing with the model throws afterwards. */
export function dematerialize(root: Module): void {
  for (const parameter of root.namedState().values()) parameter.unbind()?.dispose();
  for (const buffer of root.namedBuffers().values()) buffer.unbind()?.dispose();
}

function give(name: string, parameter: Parameter, seed: number, dtype: DType): void {
  const tensor = keep(empty(parameter.shape, { dtype }));
  initializeSlice(tensor, specOf(name, parameter), seed, 0);
  parameter.bind(parameter.trainable ? tensor.requiresGrad_() : tensor);
}
