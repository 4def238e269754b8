import type { EventOf } from "../events/index.ts";
import type { TableChange } from "./frame.ts";
import { HistoryTable } from "./history-table.ts";

/** Memory by kind over the steps, summed over the ranks, in bytes: a column for each kind. */
export class MemoryHistory {
  readonly #table = new HistoryTable();
  /** What each rank held at `#step`. */
  readonly #held = new Map<number, EventOf<"memory.measured">["byKind"]>();
  #step = Number.NaN;

  /** Takes up what one rank holds. */
  measured({ step, rank, byKind }: EventOf<"memory.measured">): void {
    if (step !== this.#step) this.#held.clear();
    this.#step = step;
    this.#held.set(rank, byKind);
    const sum: Record<string, number> = {};
    for (const [kind, { liveBytes }] of [...this.#held.values()].flatMap((byKind) =>
      Object.entries(byKind),
    )) {
      sum[kind] = (sum[kind] ?? 0) + liveBytes;
    }
    // The row of a step is told again with each rank that comes in.
    this.#table.append({ step, ...sum });
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
    this.#held.clear();
  }
}
