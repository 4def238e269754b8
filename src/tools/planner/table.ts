/**
 * Rows with their columns aligned, the first row their headings.
 * @param isText - which columns are aligned to the left; numbers are to the right
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
