import { loadInitializers } from "../../../compute/nn/index.ts";
import type { BlockState } from "../../../compute/parallel/index.ts";
import type { Addressed } from "../../../runtime/index.ts";
import type { InitialState } from "../../protocols/index.ts";
import type { InitialValues } from "./initial-values.ts";
import { KeptValues } from "./kept-values.ts";

/** @param reader - the actor that fills blocks @throws errors of opening a file */
export async function openValues(initial: InitialState, reader: Addressed): Promise<InitialValues> {
  const { base, ...own } = initial;
  if (base !== undefined)
    return new ValuesOnBase(await openValues(own, reader), await openValues(base, reader));
  if (initial.kind === "seed") return new DrawnValues(initial.seed);
  if (initial.kind === "memory") return new KeptValues(initial, reader);
  // Imported here: a shard that begins from a seed does not need the checkpoint room.
  const { StoredValues } = await import("./stored-values.ts");
  return StoredValues.open(initial);
}

/** Values of a delta, and those of its base for the rest. */
class ValuesOnBase implements InitialValues {
  readonly #own: InitialValues;
  readonly #base: InitialValues;

  /** Ownership of both passes. */
  constructor(own: InitialValues, base: InitialValues) {
    this.#own = own;
    this.#base = base;
  }

  fill(state: BlockState): Promise<void> {
    return (state.layout.base ? this.#base : this.#own).fill(state);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#own[Symbol.asyncDispose]();
    await this.#base[Symbol.asyncDispose]();
  }
}

class DrawnValues implements InitialValues {
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  async fill(state: BlockState): Promise<void> {
    await loadInitializers(state.layout.parameters.map(({ init }) => init));
    state.initialize(this.#seed);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
