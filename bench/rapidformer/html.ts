import { convergencePicture, escaped, tablePicture } from "./pictures.ts";
import { type BenchResult, type Column, summaryOf, type Table, tablesOf } from "./report.ts";

const style = `
:root { color-scheme: light dark; --line: #8883; --faint: #888; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2.5rem auto 4rem; max-width: 84rem; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0 0 0.25rem; }
h2 { font-size: 1.2rem; margin: 3rem 0 0.5rem; }
.about { color: var(--faint); margin: 0.15rem 0; max-width: 64rem; font-size: 0.87rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.93rem; }
td, th { padding: 0.3rem 0.7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { text-align: left; padding-left: 0; }
th { font-weight: 600; vertical-align: bottom; }
.owners th { border-bottom: 0; padding-bottom: 0; color: var(--faint); font-weight: 400; text-align: left; }
.begin { border-left: 1px solid var(--line); }
tbody tr:hover { background: #8881; }
td.reason { text-align: left; white-space: normal; color: var(--faint); font-size: 0.87rem; }
svg { max-width: 100%; height: auto; }
`;

/** The picture of each table of a result, in order: SVG. */
export function picturesOf({ tables, convergence }: BenchResult): string[] {
  return [...tables.map(tablePicture), ...(convergence.length > 0 ? [convergencePicture(convergence)] : [])];
}

/** The report as a single self-contained page. */
export function htmlReport(result: BenchResult): string {
  const pictures = picturesOf(result);
  const sections = tablesOf(result).map(
    (table, index) => `<section>
<h2>${escaped(table.heading)}</h2>
${table.notes.map((note) => `<p class="about">${escaped(note)}</p>`).join("\n")}
${htmlTable(table)}
${pictures[index] ?? ""}
</section>`,
  );
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Benchmarks</title>
<style>${style}</style>
<h1>Benchmarks</h1>
<p class="about">${escaped(summaryOf(result))}</p>
${sections.join("\n")}
</html>
`;
}

/** Adjacent columns of one group are under its name. */
function htmlTable({ columns, rows }: Table): string {
  const begins = columns.map(({ of }, index) => index > 0 && of !== columns[index - 1]?.of);
  const classOf = (column: number) => (begins[column] ? ' class="begin"' : "");
  const owners = columns.flatMap(({ of }, index) => {
    if (index > 0 && !begins[index]) return [];
    return [`<th colspan="${spanAt(columns, index)}"${classOf(index)}>${escaped(of)}</th>`];
  });
  const names = columns.map(({ name }, index) => `<th${classOf(index)}>${escaped(name)}</th>`);
  const heads = [
    ...(columns.some(({ of }) => of !== "") ? [`<tr class="owners">${owners.join("")}</tr>`] : []),
    `<tr>${names.join("")}</tr>`,
  ];
  const body = rows.map((cells) => `<tr>${cellsOf(cells, classOf).join("")}</tr>`);
  return `<div class="scroll"><table><thead>${heads.join("\n")}</thead>
<tbody>${body.join("\n")}</tbody></table></div>`;
}

/** Number of adjacent columns, from one on, in the same group. */
function spanAt(columns: readonly Column[], begin: number): number {
  const rest = columns.slice(begin);
  const end = rest.findIndex(({ of }) => of !== rest[0]?.of);
  return end === -1 ? rest.length : end;
}

/** A reason takes the place of missing numbers. */
function cellsOf(cells: readonly string[], classOf: (column: number) => string): string[] {
  const html: string[] = [];
  for (let column = 0; column < cells.length; ) {
    const cell = cells[column] ?? "";
    const isReason = /^(refused|no peer): /.test(cell);
    let span = 1;
    while (isReason && cells[column + span] === "") span++;
    html.push(
      isReason
        ? `<td class="reason${classOf(column) === "" ? "" : " begin"}" colspan="${span}">${escaped(cell)}</td>`
        : `<td${classOf(column)}>${escaped(cell)}</td>`,
    );
    column += span;
  }
  return html;
}
