import type { EventOf } from "../events/index.ts";
import type { TableChange } from "./frame.ts";
import { HistoryTable } from "./history-table.ts";

/** Memory by kind over the steps, summed over the ranks, in bytes: a column for each kind. */
export class MemoryHistory {
  readonly #table = new HistoryTable();
  #step = Number.NaN;
  #sum: Record<string, number> = {};

  /** Takes up what one rank holds. */
  measured({ step, byKind }: EventOf<"memory.measured">): void {
    if (step !== this.#step) this.#sum = {};
    this.#step = step;
    for (const [kind, { liveBytes }] of Object.entries(byKind)) {
      this.#sum[kind] = (this.#sum[kind] ?? 0) + liveBytes;
    }
    // The row of a step is told again with each rank that comes in.
    this.#table.append({ step, ...this.#sum });
  }

  rewind(step: number): void {
    this.#table.rewind(step);
  }

  takeChange(): TableChange | undefined {
    return this.#table.takeChange();
  }

  whole(): TableChange {
    return this.#table.whole();
  }

  clear(): void {
    this.#table.clear();
    this.#step = Number.NaN;
  }
}
