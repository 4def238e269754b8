import type { Module } from "../../../compute/nn/index.ts";
import { ops, Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";

/**
 * Notes the tensors that a model's modules hold beside parameters and buffers: constants, which building the model makes again.
 * No checkpoint has them, and ranks that wrote to them would each have their own.
 * @returns a check that throws a {@link TroupeError} `MODULE_STATE` for one written to, or replaced, since then
 */
export function noteHeldTensors(model: Module): () => void {
  const held = [...model.namedModules()].flatMap(([moduleName, module]) =>
    Object.entries(module).flatMap(([property, tensor]: [string, unknown]) =>
      tensor instanceof Tensor
        ? [{ module, moduleName, property, tensor, writeCount: ops.writeCount(tensor) }]
        : [],
    ),
  );
  return () => {
    for (const { module, moduleName, property, tensor, writeCount } of held) {
      const isSame = (module as unknown as Record<string, unknown>)[property] === tensor;
      if (isSame && !tensor.disposed && ops.writeCount(tensor) === writeCount) continue;
      throw new TroupeError("MODULE_STATE", {
        where: moduleName,
        expected: `${property}, a tensor that the module holds, to stay as it was built`,
        got: "a change of it in a step",
        hint: "declare it as a ModuleBuffer, which forward writes by write(…)",
        fields: { module: moduleName, property },
      });
    }
  };
}
