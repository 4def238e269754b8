import { convergencePicture, escaped, tablePicture } from "./pictures.ts";
import { type BenchResult, tablesOf } from "./report.ts";

const style = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: 0.25rem 0.7rem; text-align: right; border-bottom: 1px solid #8884; }
td:first-child, th:first-child { text-align: left; white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; }
td.refused { text-align: left; color: #888; }
p { max-width: 60rem; }
svg { max-width: 100%; height: auto; }
`;

/** The picture of each table of a result, in their order: SVG. */
export function picturesOf({ tables, convergence }: BenchResult): string[] {
  return [...tables.map(tablePicture), ...(convergence.length > 0 ? [convergencePicture(convergence)] : [])];
}

/** The report as one page that needs nothing beside it. */
export function htmlReport(result: BenchResult): string {
  const pictures = picturesOf(result);
  const sections = tablesOf(result).map(({ heading, notes, rows }, index) => {
    const [head = [], ...body] = rows;
    const row = (cells: readonly string[]) => `<tr>${cellsOf(cells).join("")}</tr>`;
    return `<h2>${escaped(heading)}</h2>
<p>${notes.map(escaped).join(" ")}</p>
<table><thead><tr>${head.map((cell) => `<th>${escaped(cell)}</th>`).join("")}</tr></thead>
<tbody>${body.map(row).join("\n")}</tbody></table>
${pictures[index] ?? ""}`;
  });
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Benchmarks</title>
<style>${style}</style>
<h1>Benchmarks</h1>
<p>${escaped(`${result.machine}; sizes: ${result.sizeName}; ${Math.round(result.seconds)} s in all.`)}</p>
${sections.join("\n")}
</html>
`;
}

/** A reason takes the place of the numbers that there are none of. */
function cellsOf(cells: readonly string[]): string[] {
  const isRefused = cells[1]?.startsWith("refused") === true;
  if (!isRefused) return cells.map((cell) => `<td>${escaped(cell)}</td>`);
  const [name = "", why = "", ...rest] = cells;
  const numEmpty = rest.findIndex((cell) => cell !== "");
  const left = rest.slice(numEmpty).map((cell) => `<td>${escaped(cell)}</td>`);
  return [
    `<td>${escaped(name)}</td>`,
    `<td class="refused" colspan="${1 + numEmpty}">${escaped(why)}</td>`,
    ...left,
  ];
}
