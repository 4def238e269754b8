import { type ActivationName, Affine, geluForm, isPrefixed, type Module } from "../../../compute/nn/index.ts";
import { optionError } from "../option-error.ts";

/** Activations whose result does not depend on an element's place in memory. */
const EXACT: readonly (ActivationName | undefined)[] = [undefined, "linear", "relu", "relu2"];

/** @throws {TroupeError} `OPTION` for a model of which a part may compute a token by others than those before it */
export function checkInvariant(model: Module): void {
  const refuse = (expected: string, got: string) => optionError("invariant", expected, got);
  if ((model as { readonly packs?: boolean }).packs !== true)
    throw refuse("used with a causal language model whose texts can share a row", model.constructor.name);
  if (isPrefixed(model)) throw refuse("used without prefixes, of which generation keeps no pages", "one");
  for (const [name, module] of model.namedModules()) {
    const { activation } = module as { readonly activation?: ActivationName };
    const isFused =
      module instanceof Affine
        ? module.bias !== null && geluForm(activation) !== undefined
        : activation === "silu" || activation === "swish"; // of a gated layer
    if (!isFused && !EXACT.includes(activation))
      throw refuse("used with relu, gelu after a bias, or a gated silu", `${activation} in ${name}`);
  }
}
