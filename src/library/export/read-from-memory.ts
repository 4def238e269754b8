import type { Module, Parameter } from "../../compute/nn/index.ts";
import { hold, type Tensor } from "../../compute/tensor/index.ts";

/** Reads a parameter or buffer by its name: float32, or its own dtype if that is no float. The caller disposes it. */
export type ReadParameter = (name: string) => Promise<Tensor>;

/** Reads the parameters of a model that has memory. */
export function readFromMemory(model: Module): ReadParameter {
  return async (name) => {
    const parameter = model.namedState().get(name) ?? model.namedBuffers().get(name);
    const { memory } = parameter as Parameter;
    const isFloat = memory.dtype.includes("float");
    return hold(() => (isFloat ? memory.detach().to("float32").clone() : memory.clone()));
  };
}
