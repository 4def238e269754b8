import type { Fields } from "../task.ts";

/** The names of classes, and the number that each one is. */
export class Labels {
  readonly names: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;

  /** Whole numbers from 0 on stand for themselves; other labels are numbered in the order of their names. */
  constructor(labels: Iterable<string | number>) {
    const given = new Set(labels);
    const numbers = [...given].map(Number);
    const areIds = numbers.every((id) => Number.isSafeInteger(id) && id >= 0);
    this.names = areIds
      ? Array.from({ length: Math.max(-1, ...numbers) + 1 }, (_, id) => String(id))
      : [...given].map(String).toSorted();
    this.#ids = new Map(this.names.map((name, id) => [name, id]));
  }

  /** @returns its number; −100, which counts for nothing, of a label that training has not */
  idOf(label: string | number): number {
    return this.#ids.get(String(label)) ?? -100;
  }

  /** What they decide of a config.json. */
  get fields(): Fields {
    return {
      id2label: Object.fromEntries(this.names.map((name, id) => [String(id), name])),
      num_labels: undefined,
    };
  }
}
