/**
 * Aligns the columns of a table; the first row has the headings.
 * @param isText - whether a column is aligned to the left, as texts are; numbers are aligned to the right
 */
export function table(
  rows: readonly (readonly string[])[],
  isText: (column: number) => boolean = () => true,
): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
