import { type Task, taskOf } from "../../../library/models/index.ts";
import type { Fields } from "../task.ts";

/** Labels of the head in a model's folder, and how those of the data match them. */
export interface FolderLabels {
  readonly task: Task;
  /** The folder's config.json. */
  readonly config: Fields;
  /** Whether a number means the folder's label with that number, even if labels have names. Default: only if they have none. */
  readonly areNumbersKnown?: boolean;
}

/** Names of classes and their numbers. */
export class Labels {
  readonly names: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;

  /**
   * Takes the folder's labels if it has a head for the task and knows every given label; else the given ones: whole numbers from 0
   * keep their values, other labels are numbered in order of their names.
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
    // Unless all labels are names, they are indices.
    const places = this.names.map((_, id) => [String(id), id] as const);
    const isByName = [...given].every((label) => this.names.includes(String(label)));
    this.#ids = new Map(isByName ? this.names.map((name, id) => [name, id]) : places);
  }

  /** @returns the label's number; −100, which is left out of the loss, for an unknown label */
  idOf(label: string | number): number {
    return this.#ids.get(String(label)) ?? -100;
  }

  /** The fields of config.json that the labels decide. */
  get fields(): Fields {
    return {
      id2label: Object.fromEntries(this.names.map((name, id) => [String(id), name])),
      num_labels: undefined,
    };
  }
}

/** Labels of a folder's head, if it knows all given labels; undefined if a new head is needed. */
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
