import type { TableChange } from "./frame.ts";

/** Selects a row of a group: the one with the least or the greatest value of a field. */
export interface Extreme<Field extends string> {
  readonly field: Field;
  readonly of: "min" | "max";
}

type Row = Readonly<Record<string, number>>;

/** Rows kept of each group. */
const numPicked = 4;

/**
 * The history of a run in a bounded number of rows. Equal numbers of consecutive rows form a group, of which four rows are kept,
 * the requested extremes among them: so a spike of one step stays visible however long the run is. When the table is full,
 * neighbouring groups are merged, which keeps all of the run equally fine.
 */
export class HistoryTable<Field extends string> {
  readonly #extremes: readonly Extreme<Field>[];
  readonly #capacity: number;
  #rows: Row[] = [];
  /** Fields of all rows so far; a row may lack some. */
  readonly #fields = new Set<string>();
  /** Number of rows in complete groups, which come first. */
  #numClosed = 0;
  /** Rows that a group represents. */
  #groupSize = numPicked;
  #numInOpenGroup = 0;
  /** Leading rows that have not changed since they were last sent. */
  #numSent = 0;
  #changed = false;

  /** @param extremes - at most four @param capacity - rows kept besides the current group's; a multiple of eight */
  constructor(extremes: readonly Extreme<Field>[] = [], capacity = 2048) {
    this.#extremes = extremes;
    this.#capacity = capacity;
  }

  get last(): Row | undefined {
    return this.#rows.at(-1);
  }

  /** Adds a row, or puts it in place of the last one of its step; drops later ones, which a run now repeats. */
  append(row: Row & Readonly<Record<Field | "step", number>>): void {
    for (const field of Object.keys(row)) this.#fields.add(field);
    if (this.last?.step === row.step) {
      this.#replaceEnd(this.#rows.length - 1, [row]);
      return;
    }
    if ((this.last?.step ?? Number.NEGATIVE_INFINITY) > row.step) this.rewind(row.step);
    // The newest row is always kept, whichever rows of its group remain later.
    this.#replaceEnd(this.#numClosed, [...this.#pick(this.#rows.slice(this.#numClosed)), row]);
    this.#numInOpenGroup++;
    if (this.#numInOpenGroup === this.#groupSize) this.#closeGroup();
  }

  /** Drops the rows of `step` and later. */
  rewind(step: number): void {
    const numLeft = this.#rows.findIndex((row) => (row.step as number) >= step);
    if (numLeft < 0) return;
    this.#replaceEnd(numLeft, []);
    this.#numClosed = Math.min(this.#numClosed, numLeft - (numLeft % numPicked));
    this.#numInOpenGroup = numLeft - this.#numClosed;
  }

  clear(): void {
    this.#replaceEnd(0, []);
    this.#numClosed = 0;
    this.#numInOpenGroup = 0;
    this.#groupSize = numPicked;
    this.#fields.clear();
  }

  /** The changes since the last call; undefined if there are none. */
  takeChange(): TableChange | undefined {
    if (!this.#changed) return undefined;
    const change = this.#from(this.#numSent);
    this.#changed = false;
    this.#numSent = this.#rows.length;
    return change;
  }

  /** All rows, for a page that has none yet. */
  complete(): TableChange {
    return this.#from(0);
  }

  #from(numKept: number): TableChange {
    const rows = this.#rows.slice(numKept);
    const columns = [...this.#fields].map((field) => [field, rows.map((row) => row[field] ?? Number.NaN)]);
    return { numKept, columns: Object.fromEntries(columns) };
  }

  /** Replaces all rows after the first `numBefore`; rows that were there already count as unchanged. */
  #replaceEnd(numBefore: number, rows: readonly Row[]): void {
    const numSame = rows.findIndex((row, index) => row !== this.#rows[numBefore + index]);
    const isSame = numSame < 0 && numBefore + rows.length === this.#rows.length;
    if (isSame) return;
    this.#numSent = Math.min(this.#numSent, numBefore + (numSame < 0 ? rows.length : numSame));
    this.#changed = true;
    this.#rows.length = numBefore;
    this.#rows.push(...rows);
  }

  #closeGroup(): void {
    this.#replaceEnd(this.#numClosed, this.#pick(this.#rows.slice(this.#numClosed)));
    this.#numClosed = this.#rows.length;
    this.#numInOpenGroup = 0;
    if (this.#numClosed >= this.#capacity) this.#joinGroups();
  }

  #joinGroups(): void {
    const joined: Row[] = [];
    for (let begin = 0; begin < this.#numClosed; begin += 2 * numPicked)
      joined.push(...this.#pick(this.#rows.slice(begin, begin + 2 * numPicked)));
    this.#replaceEnd(0, joined);
    this.#numClosed = joined.length;
    this.#groupSize *= 2;
  }

  /** The rows of a group to keep, in order: the extremes, then the latest. */
  #pick(rows: readonly Row[]): Row[] {
    if (rows.length <= numPicked) return [...rows];
    const picked = new Set(this.#extremes.map((extreme) => indexOfExtreme(rows, extreme)));
    for (let index = rows.length - 1; picked.size < numPicked; index--) picked.add(index);
    return [...picked].sort((a, b) => a - b).map((index) => rows[index] as Row);
  }
}

/** NaN is the most extreme value. */
function indexOfExtreme(rows: readonly Row[], { field, of }: Extreme<string>): number {
  const rank = (index: number) => {
    const value = rows[index]?.[field] as number;
    if (Number.isNaN(value)) return Number.POSITIVE_INFINITY;
    return of === "max" ? value : -value;
  };
  let best = 0;
  for (let index = 1; index < rows.length; index++) if (rank(index) > rank(best)) best = index;
  return best;
}
