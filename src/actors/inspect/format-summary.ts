import type { TensorSummary } from "./tensor-summary.ts";

const NUMBER_WIDTH = 10;
const SHAPE_WIDTH = 20;
const NUMBERS = ["max", "min", "std", "mean", "gradStd", "gradMean"] as const;
const HEADERS = ["max", "min", "std", "mean", "grad_std", "grad_mean"];

/** @returns a table of summaries with the columns and widths of BMTrain's `format_summary` */
export function formatSummary(summaries: readonly TensorSummary[]): string {
  const nameWidth = Math.max("name".length, ...summaries.map(({ name }) => name.length)) + 4;
  const line = (name: string, shape: string, numbers: readonly string[]) =>
    [cell(name, nameWidth), cell(shape, SHAPE_WIDTH), ...numbers.map((text) => cell(text, NUMBER_WIDTH))]
      .join("")
      .trimEnd();
  const rows = summaries.map((summary) =>
    line(
      summary.name,
      `(${summary.shape.join(", ")}${summary.shape.length === 1 ? "," : ""})`,
      NUMBERS.map((kind) => summary[kind].toFixed(4)),
    ),
  );
  return [line("name", "shape", HEADERS), ...rows].join("\n");
}

/** Cut to its width, a space before it. */
function cell(text: string, width: number): string {
  return ` ${text}`.slice(0, width).padEnd(width);
}
