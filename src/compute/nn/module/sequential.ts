import type { Tensor } from "../../tensor/index.ts";
import { Module } from "./module.ts";

/** One stage of a {@link Sequential}: a module with one input and one output, or a function such as an activation. */
export type SequentialItem = (Module & { forward(x: Tensor): Tensor }) | ((x: Tensor) => Tensor);

/**
 * A chain of stages: each gets the output of the one before. Modules are named by their index among all stages, functions
 * included, so that names match torch's Sequential, in which an activation is a module: `new Sequential(new Linear(4, 8),
 * activations.gelu, new Linear(8, 2))` has `0.weight` and `2.weight`. For the parallel engine it is part of the module that
 * holds it; put layers that should be blocks into a `ModuleList`.
 */
export class Sequential extends Module implements Iterable<SequentialItem> {
  readonly [index: number]: SequentialItem;
  readonly #items: readonly SequentialItem[];

  constructor(...items: readonly SequentialItem[]) {
    super();
    this.#items = items;
    indexItems(this, items);
  }

  /** Number of stages. */
  get length(): number {
    return this.#items.length;
  }

  /** Returns the stage at `index`, counted from the end if negative. */
  at(index: number): SequentialItem | undefined {
    return this.#items.at(index);
  }

  [Symbol.iterator](): Iterator<SequentialItem> {
    return this.#items[Symbol.iterator]();
  }

  override forward(x: Tensor): Tensor {
    let y = x;
    for (const item of this.#items) y = item instanceof Module ? item.forward(y) : item(y);
    return y;
  }

  protected override members(): [string, unknown][] {
    return this.#items.map((item, index) => [String(index), item]);
  }
}

/** Makes a list's items readable as `list[0]`. The properties are not enumerable, so that members are found once and in order. */
export function indexItems(list: object, items: readonly unknown[]): void {
  items.forEach((value, index) => {
    Object.defineProperty(list, index, { value });
  });
}

/** Gives back what it is given: a place in a model that plans can name. */
export class Identity extends Module {
  override forward(x: Tensor): Tensor {
    return x;
  }
}
