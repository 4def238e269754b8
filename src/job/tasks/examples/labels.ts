import { type Task, taskOf } from "../../../library/models/index.ts";
import type { Fields } from "../task.ts";

/** The labels of the head in a model's folder, and how labels of the data are matched to them. */
export interface FolderLabels {
  readonly task: Task;
  /** The folder's config.json. */
  readonly config: Fields;
  /** Whether a number stands for the folder's label of that number, whatever its name. Default: only where it has no names. */
  readonly areNumbersKnown?: boolean;
}

/** The names of classes, and the number that each one is. */
export class Labels {
  readonly names: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;

  /**
   * The folder's own labels where it has a head for the task and knows every label that is given; else those that are given:
   * whole numbers from 0 on stand for themselves, other labels are numbered in the order of their names.
   */
  constructor(labels: Iterable<string | number>, folder: FolderLabels) {
    const given = new Set(labels);
    const known = knownLabels(given, folder);
    const numbers = [...given].map(Number);
    const areIds = numbers.every((id) => Number.isSafeInteger(id) && id >= 0);
    const ofData = areIds
      ? Array.from({ length: Math.max(-1, ...numbers) + 1 }, (_, id) => String(id))
      : [...given].map(String).toSorted();
    this.names = known ?? ofData;
    // A number that is no name is the index of a label.
    const places = this.names.map((_, id) => [String(id), id] as const);
    const isByName = [...given].every((label) => this.names.includes(String(label)));
    this.#ids = new Map(isByName ? this.names.map((name, id) => [name, id]) : places);
  }

  /** @returns its number; −100, which counts for nothing, of a label that is not known */
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

/** The names that a folder's head has, where it has one that knows all labels; undefined where a new head is needed. */
function knownLabels(
  given: ReadonlySet<string | number>,
  { task, config, areNumbersKnown = false }: FolderLabels,
): readonly string[] | undefined {
  const { id2label } = config;
  if (given.size === 0 || taskOf(config) !== task || typeof id2label !== "object" || id2label === null)
    return undefined;
  const names = Object.entries(id2label)
    .toSorted(([one], [other]) => Number(one) - Number(other))
    .map(([, name]) => String(name));
  const labels = [...given].map(String);
  if (labels.every((label) => names.includes(label))) return names;
  const isNumber = (label: string) => /^\d+$/.test(label) && Number(label) < names.length;
  const areNameless = names.every((name, id) => name === `LABEL_${id}`);
  const isAsLarge = labels.length === names.length;
  return labels.every(isNumber) && (areNumbersKnown || areNameless || isAsLarge) ? names : undefined;
}
