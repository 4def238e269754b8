import type { Affine, Module } from "../../compute/nn/index.ts";
import type { PrefixedStack } from "./family.ts";

/** All attentions of one class in a causal model; undefined if there are none. */
export function attentionsOf<A extends Module & { readonly headWidth: number }>(
  model: Module & { readonly maxPositions?: number },
  Attention: abstract new (...options: never[]) => A,
  keysOf: (attention: A) => { readonly map: Affine; readonly parts: number },
): PrefixedStack | undefined {
  const attentions = [...model.namedModules().values()]
    .filter((module): module is A => module instanceof Attention)
    .map((attention) => ({ attention, ...keysOf(attention) }));
  if (attentions.length === 0) return undefined;
  const { maxPositions = Number.POSITIVE_INFINITY } = model;
  return { stack: model, maskName: "attentionMask", maxPositions, attentions };
}
