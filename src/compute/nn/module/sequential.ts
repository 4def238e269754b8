import type { Tensor } from "../../tensor/index.ts";
import { Module } from "./module.ts";
import { Items } from "./module-list.ts";

/** One stage of a {@link Sequential}: a module with one input and one output, or a function such as an activation. */
export type SequentialItem = (Module & { forward(x: Tensor): Tensor }) | ((x: Tensor) => Tensor);

/**
 * A chain of stages: each gets the output of the one before. Modules are named by their index among all stages, functions
 * included, so that names match torch's Sequential, in which an activation is a module: `new Sequential(new Linear(4, 8),
 * activations.gelu, new Linear(8, 2))` has `0.weight` and `2.weight`. Its stages are no blocks of the parallel engine; put layers
 * that should be into a `ModuleList`.
 */
export class Sequential extends Items<SequentialItem> {
  constructor(...items: readonly SequentialItem[]) {
    super(items);
  }

  override forward(x: Tensor): Tensor {
    let y = x;
    for (const item of this) y = item instanceof Module ? item.forward(y) : item(y);
    return y;
  }
}

/** Gives back what it is given: a place in a model that plans can name. */
export class Identity extends Module {
  override forward(x: Tensor): Tensor {
    return x;
  }
}
