import { describeValue, TroupeError } from "../../../errors/index.ts";
import { Module } from "./module.ts";

/** A module that consists of items in order, named by their index, readable as `list[0]`. */
export abstract class Items<Item> extends Module implements Iterable<Item> {
  readonly [index: number]: Item;
  readonly #items: readonly Item[];

  constructor(items: readonly Item[]) {
    super();
    this.#items = items;
    // Not enumerable, so that members are found once and in order.
    for (const [index, value] of items.entries()) Object.defineProperty(this, index, { value });
  }

  /** Number of items. */
  get length(): number {
    return this.#items.length;
  }

  /** Returns the item at `index`, counted from the end if negative. */
  at(index: number): Item | undefined {
    return this.#items.at(index);
  }

  [Symbol.iterator](): Iterator<Item> {
    return this.#items[Symbol.iterator]();
  }

  protected override members(): [string, unknown][] {
    return this.#items.map((item, index) => [String(index), item]);
  }
}

/**
 * A list of modules, named by their index. The parallel engine makes one block of each item of a model's outermost lists, so
 * put the repeated layers of a network into one.
 */
export class ModuleList<M extends Module> extends Items<M> {
  readonly #numCalls: number;

  /**
   * @param options.numCalls - calls of items in one forward, if some are called several times
   * @throws {TroupeError} `MODULE_LAYOUT` if an item is not a module
   */
  constructor(items: Iterable<M>, options: { readonly numCalls?: number } = {}) {
    const modules = [...items];
    const other = modules.findIndex((item) => !(item instanceof Module));
    if (other >= 0)
      throw new TroupeError("MODULE_LAYOUT", {
        where: "ModuleList",
        expected: "modules",
        got: `${describeValue(modules[other])} as item ${other}`,
      });
    super(modules);
    this.#numCalls = options.numCalls ?? this.length;
  }

  /** Makes a list of `count` modules. @param make - called with each one's index */
  static of<M extends Module>(count: number, make: (index: number) => M): ModuleList<M> {
    return new ModuleList(Array.from({ length: count }, (_, index) => make(index)));
  }

  /** Number of calls of its items in one forward. Default: once each. */
  get numCalls(): number {
    return this.#numCalls;
  }

  /** Always throws, because a list has no computation of its own. @throws `MODULE_LAYOUT` */
  override forward(): never {
    throw new TroupeError("MODULE_LAYOUT", {
      where: "ModuleList",
      expected: "a call of its items",
      got: "one of the list itself, which computes nothing",
      hint: "call its items",
    });
  }
}
