/** A line of one panel: steps and values. */
export interface Curve {
  readonly name: string;
  readonly points: readonly { readonly step: number; readonly value: number }[];
}

/** Curves that share an axis. */
export interface Panel {
  readonly title: string;
  readonly curves: readonly Curve[];
}

const [PANEL_WIDTH, PANEL_HEIGHT, GAP, LEFT, TOP] = [360, 200, 64, 52, 56];
const COLOURS = ["#2f6fb4", "#d9822b", "#3a8f5c", "#a0448f", "#8a7a2f"];
/** More points than a panel has pixels are averaged. */
const MOST_POINTS = 180;

/** Panels side by side as an SVG that reads on light and on dark pages. */
export function curvesPicture(title: string, panels: readonly Panel[]): string {
  const width = LEFT + panels.length * (PANEL_WIDTH + GAP);
  const height = TOP + PANEL_HEIGHT + 44;
  const drawn = panels.map((panel, index) =>
    panelGroup(
      panel,
      LEFT + index * (PANEL_WIDTH + GAP),
      panels.slice(0, index).reduce((sum, { curves }) => sum + curves.length, 0),
    ),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="11">
<title>${escaped(title)}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="${LEFT}" y="22" font-size="14" font-weight="600" fill="#222">${escaped(title)}</text>
${drawn.join("\n")}
</svg>
`;
}

function panelGroup({ title, curves }: Panel, x: number, firstColour: number): string {
  const all = curves.flatMap(({ points }) => points);
  const mostStep = Math.max(1, ...all.map(({ step }) => step));
  const values = all.map(({ value }) => value);
  const ticks = ticksOf(Math.min(0, ...values), Math.max(...values));
  const [low = 0, high = 1] = [ticks[0], ticks.at(-1)];
  const across = (step: number) => (step / mostStep) * PANEL_WIDTH;
  const down = (value: number) => PANEL_HEIGHT * (1 - (value - low) / (high - low || 1));
  const rules = ticks.map(
    (value) =>
      `<line x1="0" x2="${PANEL_WIDTH}" y1="${at(down(value))}" y2="${at(down(value))}" stroke="#e2e2e2"/><text x="-6" y="${at(down(value) + 4)}" text-anchor="end" fill="#666">${Number(value.toPrecision(6))}</text>`,
  );
  const lines = curves.map(({ points }, index) => {
    const path = averaged(points).map(({ step, value }) => `${at(across(step))},${at(down(value))}`);
    return `<polyline points="${path.join(" ")}" fill="none" stroke="${colourOf(firstColour + index)}" stroke-width="1.6"/>`;
  });
  const names = curves.map(
    ({ name, points }, index) =>
      `<text x="${110 * index}" y="-8" fill="${colourOf(firstColour + index)}">${escaped(name)} ${Number((points.at(-1)?.value ?? 0).toPrecision(3))}</text>`,
  );
  return `<g transform="translate(${x} ${TOP + 12})">
${[...rules, ...lines, ...names].join("\n")}
<text x="0" y="${PANEL_HEIGHT + 18}" fill="#666">0</text>
<text x="${PANEL_WIDTH}" y="${PANEL_HEIGHT + 18}" text-anchor="end" fill="#666">step ${mostStep}</text>
<text x="${PANEL_WIDTH / 2}" y="${PANEL_HEIGHT + 18}" text-anchor="middle" fill="#222">${escaped(title)}</text>
</g>`;
}

/** Some five round numbers from below the least value to above the greatest. */
function ticksOf(least: number, greatest: number): number[] {
  const rough = (greatest - least || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  const [first, last] = [Math.floor(least / step), Math.ceil(greatest / step)];
  return Array.from({ length: Math.max(2, last - first + 1) }, (_, index) => (first + index) * step);
}

/** Means of neighbours, so that a loss of thousands of steps is a line and not a band. */
function averaged(points: Curve["points"]): Curve["points"] {
  const size = Math.ceil(points.length / MOST_POINTS);
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) => {
    const part = points.slice(index * size, (index + 1) * size);
    const mean = (of: (point: (typeof part)[number]) => number) =>
      part.reduce((sum, point) => sum + of(point), 0) / part.length;
    return { step: mean(({ step }) => step), value: mean(({ value }) => value) };
  });
}

function colourOf(index: number): string {
  return COLOURS[index % COLOURS.length] as string;
}

function at(place: number): string {
  return place.toFixed(1);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
