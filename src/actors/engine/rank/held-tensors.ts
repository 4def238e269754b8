import type { Module } from "../../../compute/nn/index.ts";
import { ops, Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";

interface HeldTensor {
  readonly module: Module;
  readonly moduleName: string;
  readonly property: string;
  readonly tensor: Tensor;
  readonly writeCount: number;
}

/**
 * The tensors that a model's modules hold as properties beside their parameters and buffers. They are constants, made again by
 * building the model: no checkpoint has them, and ranks that wrote to them would each have their own.
 */
export class HeldTensors {
  readonly #held: readonly HeldTensor[];

  /** @param model - as the job has built it */
  constructor(model: Module) {
    this.#held = [...model.namedModules()].flatMap(([moduleName, module]) =>
      Object.entries(module).flatMap(([property, tensor]: [string, unknown]) =>
        tensor instanceof Tensor
          ? [{ module, moduleName, property, tensor, writeCount: ops.writeCount(tensor) }]
          : [],
      ),
    );
  }

  /** @throws {TroupeError} `MODULE_STATE` for one that was written to, or replaced, since the model was built */
  checkUnchanged(): void {
    for (const { module, moduleName, property, tensor, writeCount } of this.#held) {
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
  }
}
