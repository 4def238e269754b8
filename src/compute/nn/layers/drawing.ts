import { TroupeError } from "../../../errors/index.ts";
import { type Device, empty, noGrad, ops, type Shape, type Tensor } from "../../tensor/index.ts";
import { Module } from "../module/module.ts";
import type { Randomness } from "../random/randomness.ts";

/** Where a draw lies: `seed` and `stream` as Philox takes them. */
export interface Draw {
  readonly seed: number;
  readonly stream: number;
}

/** A module that draws at random, as a pure function of the bound `Randomness` and its own name. */
export abstract class Drawing extends Module {
  #source: { randomness: Randomness; name: string } | undefined;

  /** Draws from `randomness` under `name` from now on. */
  bind(randomness: Randomness, name: string): void {
    this.#source = { randomness, name };
  }

  /**
   * The stream of the next of the module's draws at the present step and micro-batch: each call is a draw of its own.
   * @param purpose - tells several draws of one module apart
   * @throws `RANDOMNESS_UNBOUND` where nothing is bound
   */
  protected draw(purpose = ""): Draw {
    if (this.#source === undefined) {
      const kind = this.constructor.name;
      throw new TroupeError(
        "RANDOMNESS_UNBOUND",
        {
          where: kind,
          expected: "a source to draw at random from",
          got: "none",
          hint: "call bindRandomness on the model, or eval()",
        },
        { fields: { kind } },
      );
    }
    const { randomness, name } = this.#source;
    return {
      seed: randomness.seed,
      stream: randomness.nextStream(purpose === "" ? name : `${name}/${purpose}`),
    };
  }

  /** The next draw as numbers of [0, 1), float32. @param purpose - as of {@link draw} */
  protected uniform(shape: Shape, device: Device, purpose = ""): Tensor {
    const { seed, stream } = this.draw(purpose);
    return noGrad(() => ops.troupe.philoxUniform_(empty(shape, { device }), 0, 1, seed, stream, 0));
  }
}

/** Lets every module below `root` that draws do so from `randomness` under its full name. */
export function bindRandomness(root: Module, randomness: Randomness): void {
  for (const [name, module] of root.namedModules())
    if (module instanceof Drawing) module.bind(randomness, name);
}
