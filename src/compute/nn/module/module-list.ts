import { describeValue, TroupeError } from "../../../errors/index.ts";
import { Module } from "./module.ts";
import { indexItems } from "./sequential.ts";

/**
 * Modules in a row, named by their index. The parallel engine makes one block of each item of the outermost lists
 * of a model, so the repeated layers of a network belong in one.
 */
export class ModuleList<M extends Module> extends Module implements Iterable<M> {
  readonly [index: number]: M;
  readonly #numCalls: number;
  readonly #items: readonly M[];

  /**
   * @param options.numCalls - calls of items in one forward, if some are called several times
   * @throws {TroupeError} `MODULE_LAYOUT` for an item that is no module
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

  /** How often forward calls its items in total. Default: once each. */
  get numCalls(): number {
    return this.#numCalls;
  }

  /** Number of modules. */
  get length(): number {
    return this.#items.length;
  }

  /** The module at `index`, counted from the end where negative. */
  at(index: number): M | undefined {
    return this.#items.at(index);
  }

  [Symbol.iterator](): Iterator<M> {
    return this.#items[Symbol.iterator]();
  }

  /** A list has no computation of its own. @throws `MODULE_LAYOUT` */
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
