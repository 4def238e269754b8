import { describeValue, TroupeError } from "../../../errors/index.ts";
import { Module } from "./module.ts";
import { indexItems } from "./sequential.ts";

/**
 * A list of modules, named by their index. The parallel engine makes one block of each item of a model's outermost lists, so
 * put the repeated layers of a network into one.
 */
export class ModuleList<M extends Module> extends Module implements Iterable<M> {
  readonly [index: number]: M;
  readonly #numCalls: number;
  readonly #items: readonly M[];

  /**
   * @param options.numCalls - calls of items in one forward, if some are called several times
   * @throws {TroupeError} `MODULE_LAYOUT` if an item is not a module
   */
  constructor(items: Iterable<M>, options: { readonly numCalls?: number } = {}) {
    super();
    this.#items = [...items];
    const other = this.#items.findIndex((item) => !(item instanceof Module));
    if (other >= 0)
      throw new TroupeError("MODULE_LAYOUT", {
        where: "ModuleList",
        expected: "modules",
        got: `${describeValue(this.#items[other])} as item ${other}`,
      });
    this.#numCalls = options.numCalls ?? this.#items.length;
    indexItems(this, this.#items);
  }

  /** Makes a list of `count` modules. @param make - called with each one's index */
  static of<M extends Module>(count: number, make: (index: number) => M): ModuleList<M> {
    return new ModuleList(Array.from({ length: count }, (_, index) => make(index)));
  }

  /** Number of calls of its items in one forward. Default: once each. */
  get numCalls(): number {
    return this.#numCalls;
  }

  /** Number of modules. */
  get length(): number {
    return this.#items.length;
  }

  /** Returns the module at `index`, counted from the end if negative. */
  at(index: number): M | undefined {
    return this.#items.at(index);
  }

  [Symbol.iterator](): Iterator<M> {
    return this.#items[Symbol.iterator]();
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

  protected override members(): [string, unknown][] {
    return this.#items.map((item, index) => [String(index), item]);
  }
}
