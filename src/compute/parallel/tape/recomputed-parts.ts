import { type Module, wrapForward } from "../../nn/index.ts";
import { gradEnabled, hold, ops, type Tensor } from "../../tensor/index.ts";
import type { PartTape } from "./block-call.ts";
import { type BlockHooks, BlockTape } from "./block-tape.ts";

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

/**
 * The tape within one call of a block with recomputed parts: it treats those parts as a model's blocks. Activations outside
 * them are kept.
 */
class InnerTape {
  readonly #tape: BlockTape;
  readonly #parameters: readonly Tensor[];
  /** Gradients of the parameters so far. */
  readonly #sums = new Map<Tensor, Tensor>();
  #numCalls = 0;

  /**
   * @param inputs - of the block, cut
   * @param parameters - all that it may read
   * @param name - of the block, for errors
   */
  constructor(inputs: readonly Tensor[], parameters: readonly Tensor[], name: string) {
    this.#parameters = parameters;
    const hooks: BlockHooks = {
      need: () => {},
      release: () => {},
      complete: () => {},
      name: () => name,
      isParameter: (tensor) => parameters.includes(tensor),
      contribute: (part, leaves, gradients) => {
        if (part === BLOCK) this.#add(leaves, gradients);
      },
    };
    const trainable = (part: number) =>
      part === BLOCK ? parameters.filter(({ requiresGrad }) => requiresGrad) : [];
    this.#tape = new BlockTape(hooks, BLOCK, trainable, { received: inputs });
  }

  /** Runs a part, keeping only its arguments and its results. */
  call<R>(forward: (...args: unknown[]) => R, args: readonly unknown[]): R {
    this.#numCalls += 1;
    return this.#tape.call(this.#numCalls, forward, args, { recompute: true });
  }

  /**
   * @param outputs - of the block
   * @param gradients - theirs
   * @returns gradients of the inputs, then of the parameters; the caller's to dispose
   */
  backward(outputs: readonly Tensor[], gradients: readonly Tensor[]): (Tensor | null)[] {
    const ofInputs = this.#tape.backward(outputs, gradients);
    const ofParameters = this.#parameters.map((parameter) => this.#sums.get(parameter) ?? null);
    this.#sums.clear();
    return [...ofInputs, ...ofParameters];
  }

  clear(): void {
    this.#tape.clear();
    for (const sum of this.#sums.values()) sum.dispose();
    this.#sums.clear();
  }

  #add(leaves: readonly Tensor[], gradients: readonly (Tensor | null)[]): void {
    leaves.forEach((leaf, index) => {
      const gradient = gradients[index] ?? null;
      if (gradient === null) return;
      const sum = this.#sums.get(leaf);
      this.#sums.set(leaf, hold(sum === undefined ? gradient.alias() : ops.add(sum, gradient)));
      sum?.dispose();
    });
  }
}

/** The index of the block itself, whose parameters its parts share. */
const BLOCK = 0;
