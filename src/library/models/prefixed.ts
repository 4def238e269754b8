import type { Affine, Module } from "../../compute/nn/index.ts";
import type { PrefixedStack } from "./family.ts";

/** The attentions of one class of a causal model, wherever they stand in it; undefined where it has none. */
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
