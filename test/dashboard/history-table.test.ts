import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HistoryTable } from "../../src/job/dashboard/history-table.ts";
import { replaceEnd } from "../../src/job/dashboard/page/tables.js";

const capacity = 64;
const groupRows = 4;

function filled(values: readonly number[]): HistoryTable<"value"> {
  const extremes = [
    { field: "value", of: "max" },
    { field: "value", of: "min" },
  ] as const;
  const table = new HistoryTable<"value">(extremes, capacity);
  for (const [index, value] of values.entries()) table.append({ step: index + 1, value });
  return table;
}

describe("HistoryTable", () => {
  it("keeps every row while there is room", () => {
    const { columns } = filled([3, 1, 2]).complete();
    expect(columns).toEqual({ step: [1, 2, 3], value: [3, 1, 2] });
  });

  it("keeps a bounded number of rows, the newest and the extremes among them, however many came", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true }), { minLength: 1, maxLength: 2000 }), (values) => {
        const { columns } = filled(values).complete();
        const kept = columns.value ?? [];
        expect(kept.length).toBeLessThanOrEqual(capacity + groupRows + 1);
        expect(kept.length).toBeGreaterThanOrEqual(Math.min(values.length, capacity / 2));
        expect(columns.step?.at(-1)).toBe(values.length);
        expect(Math.max(...kept)).toBe(Math.max(...values));
        expect(Math.min(...kept)).toBe(Math.min(...values));
        expect(columns.step).toEqual(columns.step?.toSorted((a, b) => a - b));
      }),
      { seed: 1, numRuns: 50 },
    );
  });

  it("keeps all of a long run equally fine", () => {
    const { columns } = filled(new Array(10_000).fill(1)).complete();
    const steps = columns.step ?? [];
    const gaps = steps.slice(1, -groupRows).map((step, row) => step - (steps[row] ?? 0));
    // 10,000 rows in 32 to 64: groups of 4 rows that stand for 512 or 1,024 steps.
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1024);
  });

  it("holds a value that is no number for an extreme", () => {
    const values = new Array(1000).fill(1);
    values[371] = Number.NaN;
    expect(filled(values).complete().columns.value?.some(Number.isNaN)).toBe(true);
  });

  it("forgets steps that are made again", () => {
    const table = filled([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    table.append({ step: 4, value: 40 });
    expect(table.complete().columns).toEqual({ step: [1, 2, 3, 4], value: [1, 2, 3, 40] });
  });

  it("keeps all of a long run equally fine when each rank adds a row of a step", () => {
    const table = new HistoryTable();
    for (let step = 1; step <= 20_000; step++) for (const bytes of [1, 2]) table.append({ step, bytes });
    const { step: steps = [], bytes } = table.complete().columns;
    const gaps = steps.slice(1).map((step, row) => step - (steps[row] ?? 0));
    // 20,000 rows in 1,024 to 2,048: groups of 4 rows that stand for 64 steps.
    expect(Math.max(...gaps)).toBeLessThanOrEqual(64);
    expect(new Set(bytes)).toEqual(new Set([2]));
  });

  it("returns changes that add up to the complete table, whenever they are requested", () => {
    const action = fc.oneof(
      {
        weight: 20,
        arbitrary: fc.record({ do: fc.constant("append"), times: fc.integer({ min: 1, max: 40 }) }),
      },
      { weight: 10, arbitrary: fc.record({ do: fc.constant("take"), times: fc.constant(1) }) },
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constant("rewind"), times: fc.integer({ min: 1, max: 100 }) }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("clear"), times: fc.constant(1) }) },
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const table = filled([]);
        const page: Record<string, number[]> = {};
        const take = () => {
          const change = table.takeChange();
          if (change !== undefined) replaceEnd(page, change);
        };
        let step = 0;
        for (const { do: what, times } of actions) {
          if (what === "take") take();
          if (what === "clear") table.clear();
          if (what === "rewind") {
            step = Math.max(0, step - times);
            table.rewind(step + 1);
          }
          for (let time = 0; what === "append" && time < times; time++) {
            step++;
            table.append({ step, value: (step * 7919) % 101 });
          }
        }
        take();
        const { columns } = table.complete();
        for (const field of ["step", "value"]) expect(page[field] ?? []).toEqual(columns[field] ?? []);
      }),
      { seed: 2, numRuns: 200 },
    );
  });
});
