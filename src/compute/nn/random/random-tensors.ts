import { TroupeError } from "../../../errors/index.ts";
import {
  type CreateOptions,
  empty,
  noGrad,
  ops,
  type Shape,
  scope,
  type Tensor,
} from "../../tensor/index.ts";
import { streamOf } from "./randomness.ts";

/**
 * A random number generator: a seed and the number of earlier draws. Equal generators give equal numbers, on every machine
 * and for every number of threads. It is for data and scripts; a module that draws in forward must be a `Drawing`, such as
 * `Dropout`, whose draws repeat when a block is recomputed.
 */
export class RandomGenerator {
  readonly seed: number;
  #numDraws = 0;

  /** @param seed - an integer */
  constructor(seed: number) {
    this.seed = seed;
  }

  /** Returns the Philox stream of the next draw. */
  nextStream(): number {
    return streamOf(`generator#${this.#numDraws++}`);
  }
}

/** Draws from the standard normal distribution. */
export function randn(shape: Shape, generator: RandomGenerator, options: CreateOptions = {}): Tensor {
  return drawn(shape, options, (into) =>
    ops.troupe.philoxNormal_(into, 0, 1, generator.seed, generator.nextStream(), 0),
  );
}

/** Draws uniformly from [0, 1). */
export function rand(shape: Shape, generator: RandomGenerator, options: CreateOptions = {}): Tensor {
  return drawn(shape, options, (into) =>
    ops.troupe.philoxUniform_(into, 0, 1, generator.seed, generator.nextStream(), 0),
  );
}

/** Number of distinct values of a float32 draw. */
const MOST_NUMBERS = 2 ** 24;

/**
 * Draws integers uniformly from low to high − 1. Default: int64.
 * @throws {TroupeError} `TENSOR_ARGUMENT` for a range that is empty or has more than 2^24 numbers
 */
export function randint(
  low: number,
  high: number,
  shape: Shape,
  generator: RandomGenerator,
  { dtype = "int64" }: CreateOptions = {},
): Tensor {
  const count = high - low;
  if (!(Number.isSafeInteger(low) && Number.isSafeInteger(high) && count >= 1 && count <= MOST_NUMBERS))
    throw new TroupeError("TENSOR_ARGUMENT", {
      where: "randint",
      expected: `integers low < high, at most ${MOST_NUMBERS} apart`,
      got: `${low} and ${high}`,
    });
  return scope(() =>
    rand(shape, generator)
      .to("float64")
      .mul(count)
      .floor()
      .clamp(0, count - 1)
      .add(low)
      .to(dtype),
  );
}

function drawn(shape: Shape, options: CreateOptions, fill: (into: Tensor) => void): Tensor {
  const into = empty(shape, options);
  noGrad(() => fill(into));
  return into;
}
