/** @import { TableChange } from "../frame.ts" */

/** A table by columns, all of one length. @typedef {Record<string, number[]>} Columns */

/**
 * Replaces the end of a table: its first `numKept` rows stay, the change's follow. Fields that either side lacks become NaN.
 * @param {Columns} table
 * @param {TableChange} change
 */
export function replaceEnd(table, { numKept, columns }) {
  const numNew = Math.max(0, ...Object.values(columns).map((column) => column.length));
  for (const field of new Set([...Object.keys(table), ...Object.keys(columns)])) {
    const kept = (table[field] ?? []).slice(0, numKept);
    while (kept.length < numKept) kept.push(Number.NaN);
    table[field] = [...kept, ...(columns[field] ?? new Array(numNew).fill(Number.NaN))];
  }
}
