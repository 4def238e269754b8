import { type Module, wrapForward } from "../../nn/index.ts";
import { gradEnabled, type Tensor } from "../../tensor/index.ts";
import type { PartTape } from "./block-call.ts";
import { InnerTape } from "./inner-tape.ts";

/** Parts of blocks that backward computes again; other activations of the block are kept. */
export class RecomputedParts {
  /** The tape of the present block call. */
  #tape: InnerTape | undefined;

  /**
   * Calls a block whose parts are recorded.
   * @param name - of the block, for errors
   * @param call - runs the block once it has opened the tape of its parts
   */
  within<R>(
    name: string,
    call: (open: (inputs: readonly Tensor[], parameters: readonly Tensor[]) => PartTape) => R,
  ): R {
    const outside = this.#tape;
    try {
      return call((inputs, parameters) => {
        this.#tape = new InnerTape(inputs, parameters, name);
        return this.#tape;
      });
    } finally {
      this.#tape = outside;
    }
  }

  /**
   * Makes backward compute a part again, wherever a recorded block calls it.
   * @param computing - wraps the part's forward into one call of it, run in forward and again in backward
   * @returns ends it
   */
  wrap(
    part: Module,
    computing: (forward: (...args: unknown[]) => unknown) => (...args: unknown[]) => unknown,
  ): () => void {
    return wrapForward(part, (forward, inputs) => {
      const run = computing(forward as (...args: unknown[]) => unknown);
      const tape = this.#tape;
      if (tape === undefined || !gradEnabled()) return run(...inputs) as never;
      // Parts within parts are recomputed with them.
      this.#tape = undefined;
      try {
        return tape.call(run, inputs) as never;
      } finally {
        this.#tape = tape;
      }
    });
  }
}
