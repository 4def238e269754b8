import { TroupeError } from "../../errors.ts";
import type { Module, Parameter } from "../../nn/index.ts";

/** Which of a model's parameters are trained, as the job has declared it: blocks and optimizers are laid out for those. */
export class DeclaredTraining {
  readonly #declared: readonly {
    readonly name: string;
    readonly parameter: Parameter;
    readonly trainable: boolean;
  }[];

  /** @param model - as the job has built it */
  constructor(model: Module) {
    this.#declared = [...model.namedParameters()].map(([name, parameter]) => ({
      name,
      parameter,
      trainable: parameter.trainable,
    }));
  }

  /** @throws {TroupeError} `PARAMETER_TRAINABLE` for a parameter that was frozen, or is to be trained, since then */
  checkUnchanged(): void {
    for (const { name, parameter, trainable } of this.#declared) {
      if (parameter.trainable === trainable) continue;
      throw new TroupeError(
        "PARAMETER_TRAINABLE",
        {
          where: name,
          expected: `trainable to stay ${trainable}, as the model was declared`,
          got: `${parameter.trainable} during the run`,
          hint: "freeze it in the job's model(…) and go on from a checkpoint, or train a new run with it as pretrained",
        },
        { fields: { name, trainable } },
      );
    }
  }
}
