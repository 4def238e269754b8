import { TroupeError } from "../../../errors/index.ts";
import { type Device, empty, noGrad, ops, type Shape, type Tensor } from "../../tensor/index.ts";
import { Module } from "../module/module.ts";
import type { Randomness } from "../random/randomness.ts";

/** The Philox seed and stream of a draw. */
export interface Draw {
  readonly seed: number;
  readonly stream: number;
}

/** A module that draws random numbers. They are a pure function of the bound `Randomness` and the module's name. */
export abstract class Drawing extends Module {
  #source: { randomness: Randomness; name: string } | undefined;

  /** Draws from `randomness` under `name` from now on. */
  bind(randomness: Randomness, name: string): void {
    this.#source = { randomness, name };
  }

  /**
   * Returns the stream of the module's next draw at the present step and micro-batch. Each call is a separate draw.
   * @param purpose - distinguishes several draws of one module
   * @throws `RANDOMNESS_UNBOUND` if no randomness is bound
   */
  protected draw(purpose = ""): Draw {
    if (this.#source === undefined) {
      const kind = this.constructor.name;
      throw new TroupeError("RANDOMNESS_UNBOUND", {
        where: kind,
        expected: "a bound Randomness to draw from",
        got: "none",
        hint: "call bindRandomness on the model, or eval()",
        fields: { kind },
      });
    }
    const { randomness, name } = this.#source;
    return {
      seed: randomness.seed,
      stream: randomness.nextStream(purpose === "" ? name : `${name}/${purpose}`),
    };
  }

  /** Makes the next draw, uniform in [0, 1), float32. @param purpose - as in {@link draw} */
  protected uniform(shape: Shape, device: Device, purpose = ""): Tensor {
    const { seed, stream } = this.draw(purpose);
    return noGrad(() => ops.troupe.philoxUniform_(empty(shape, { device }), 0, 1, seed, stream, 0));
  }
}

/** Binds `randomness` to every module in `root` that draws, under its full name. */
export function bindRandomness(root: Module, randomness: Randomness): void {
  for (const [name, module] of root.namedModules())
    if (module instanceof Drawing) module.bind(randomness, name);
}
