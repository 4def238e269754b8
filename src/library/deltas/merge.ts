import { Affine, type FeatureScale, type Module } from "../../compute/nn/index.ts";
import { noGrad, scope, type Tensor } from "../../compute/tensor/index.ts";
import { deltaTarget } from "./delta.ts";

/**
 * Merges a model's low-rank products and factors into the weights. The model then has the base's names and shapes, computes the same
 * up to rounding, and costs as much as the base.
 * @param model - on one device, with memory
 * @returns a function that takes the delta out again: the weights are then the base's up to rounding
 * @throws {TroupeError} `DELTA_TARGET`, before any change, for a delta that cannot be merged, or with a factor of 0, which cannot be
 *   taken out again
 */
export function mergeDelta(model: Module): () => void {
  const maps = [...model.namedModules()].filter(
    (named): named is [string, Affine] => named[1] instanceof Affine,
  );
  for (const [name, { behind, scale }] of maps) {
    if (behind !== undefined)
      throw deltaTarget("a delta that can be merged", `${behind.constructor.name} behind ${name}`);
    if (scale !== undefined && scope(() => scale.factors.tensor.eq(0).any().item()) !== 0)
      throw deltaTarget(`factors of ${name} that can be taken out again`, "one of 0");
  }
  const tuned = maps.map(([, map]) => map).filter(({ added, scale }) => added ?? scale);
  if (tuned.length === 0)
    throw deltaTarget("a model with low-rank maps or factors", `none in ${model.constructor.name}`);
  const undo = tuned.map((map) => mergeMap(map));
  return () => {
    for (const one of undo) one();
  };
}

function mergeMap(map: Affine): () => void {
  const { added, scale } = map;
  const own: readonly unknown[] = [added?.before, added?.down, added?.up, scale?.factors];
  const members = Object.entries(map).filter(([, member]) => member !== undefined && own.includes(member));
  if (added !== undefined) addProduct(map, added, 1);
  if (scale !== undefined) multiply(map, scale, "mul_");
  for (const [name] of members) Reflect.deleteProperty(map, name);
  map.added = undefined;
  map.scale = undefined;
  return () => {
    if (scale !== undefined) multiply(map, scale, "div_");
    if (added !== undefined) addProduct(map, added, -1);
    Object.assign(map, Object.fromEntries(members));
    map.added = added;
    map.scale = scale;
  };
}

function addProduct(map: Affine, { down, up, scale }: NonNullable<Affine["added"]>, sign: 1 | -1): void {
  const wide = ({ tensor }: { readonly tensor: Tensor }) => tensor.to("float32");
  noGrad(() =>
    scope(() => {
      const product = wide(up.weight).matmul(wide(down.weight)); // [out, in]
      const oriented = map.outputDim === 0 ? product : product.t();
      map.weight.tensor.add_(oriented.to(map.weight.tensor.dtype), sign * scale);
    }),
  );
}

/** Multiplies or divides rows or columns of a weight, and the bias of rescaled outputs, by their factors. */
function multiply(map: Affine, { of, factors }: FeatureScale, by: "mul_" | "div_"): void {
  noGrad(() =>
    scope(() => {
      const { weight, bias, outputDim } = map;
      const each = factors.tensor.to(weight.tensor.dtype); // [out, 1] or [1, in], of a weight [out, in]
      weight.tensor[by](outputDim === 0 ? each : each.t());
      if (of === "outputs") bias?.tensor[by](each.view([-1]));
    }),
  );
}
