import type { Placement } from "../faults.ts";
import type { Verdict } from "../verdict.ts";
import { type Cell, emptiness, faultsOf, phases } from "./matrix.ts";

/** A cell that was tried. */
export interface Tried {
  readonly cell: Cell;
  readonly verdict: Verdict;
  readonly durationMs: number;
}

const LABEL_WIDTH = 33;
const COLUMN_WIDTH = 9;

/** The lines of one table: a row a fault, a column a phase, and beneath what the words stand for. */
export function tableOf(placement: Placement, tried: readonly Tried[]): string[] {
  const row = (label: string, words: readonly string[]): string =>
    (label.padEnd(LABEL_WIDTH) + words.map((word) => word.padEnd(COLUMN_WIDTH)).join("")).trimEnd();
  const word = (fault: string, phase: string): string =>
    tried.find(({ cell }) => cell.fault.name === fault && cell.phase.name === phase)?.verdict.outcome ?? "-";
  return [
    row(
      `phases, a ${placement} for each rank`,
      phases.map(({ name }) => name),
    ),
    ...faultsOf(placement).map(({ name, title }) =>
      row(
        title,
        phases.map((phase) => word(name, phase.name)),
      ),
    ),
    ...codesOf(tried),
    `  -: ${emptiness[placement]}`,
  ];
}

/** Errors that the cells reported, each with where. */
function codesOf(tried: readonly Tried[]): string[] {
  const places = new Map<string, string[]>();
  for (const { cell, verdict } of tried) {
    if (verdict.outcome !== "error" && verdict.outcome !== "unsaved") continue;
    const key = `${verdict.outcome} ${verdict.code}`;
    places.set(key, [...(places.get(key) ?? []), `${cell.phase.name}/${cell.fault.name}`]);
  }
  return [...places].map(([key, cells]) => `  ${key}: ${cells.join(", ")}`);
}
