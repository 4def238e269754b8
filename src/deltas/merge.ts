import { Affine, type Module } from "../nn/index.ts";
import { noGrad, scope, type Tensor } from "../tensor/index.ts";
import { deltaTarget } from "./delta.ts";

/**
 * Adds what low-rank maps of a model come to to the weights that they stand beside, and takes them away: what is left has the
 * base's names and shapes, and computes the same up to rounding, at the base's price.
 * @param model - on one device, with memory
 * @returns takes the product off again and puts the maps back: weights are the base's up to rounding
 * @throws {TroupeError} `DELTA_TARGET` for a delta that no weight can stand for, before anything is changed
 */
export function mergeDelta(model: Module): () => void {
  const maps = [...model.namedModules()].filter(
    (named): named is [string, Affine] => named[1] instanceof Affine,
  );
  for (const [name, { behind }] of maps)
    if (behind !== undefined)
      throw deltaTarget("a delta that weights can stand for", `${behind.constructor.name} behind ${name}`);
  const undo = maps.filter(([, { added }]) => added !== undefined).map(([, map]) => mergeMap(map));
  if (undo.length === 0) throw deltaTarget("a model with low-rank maps", `none in ${model.constructor.name}`);
  return () => {
    for (const one of undo) one();
  };
}

function mergeMap(map: Affine): () => void {
  const { added } = map;
  if (added === undefined) return () => {};
  const children = Object.entries(map).filter(([, child]) =>
    [added.before, added.down, added.up].includes(child),
  );
  addProduct(map, added, 1);
  for (const [name] of children) Reflect.deleteProperty(map, name);
  map.added = undefined;
  return () => {
    addProduct(map, added, -1);
    Object.assign(map, Object.fromEntries(children));
    map.added = added;
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
