import { loadInitializers } from "../../../compute/nn/index.ts";
import type { Addressed } from "../../../runtime/index.ts";
import type { InitialState } from "../../protocols/index.ts";
import type { InitialValues } from "./initial-values.ts";
import { keptValues } from "./kept-values.ts";

/** @param reader - the actor that fills blocks @throws errors of opening a file */
export async function openValues(initial: InitialState, reader: Addressed): Promise<InitialValues> {
  const { base, ...own } = initial;
  if (base !== undefined) return valuesOnBase(await openValues(own, reader), await openValues(base, reader));
  if (initial.kind === "seed") return drawnValues(initial.seed);
  if (initial.kind === "memory") return keptValues(initial, reader);
  // Imported here: a shard that begins from a seed does not need the checkpoint room.
  const { StoredValues } = await import("./stored-values.ts");
  return StoredValues.open(initial);
}

/** Values of a delta, and those of its base for the rest; owns both. */
function valuesOnBase(own: InitialValues, base: InitialValues): InitialValues {
  return {
    fill: (state) => (state.layout.base ? base : own).fill(state),
    async [Symbol.asyncDispose]() {
      await own[Symbol.asyncDispose]();
      await base[Symbol.asyncDispose]();
    },
  };
}

function drawnValues(seed: number): InitialValues {
  return {
    async fill(state) {
      await loadInitializers(state.layout.parameters.map(({ init }) => init));
      state.initialize(seed);
    },
    async [Symbol.asyncDispose]() {},
  };
}
