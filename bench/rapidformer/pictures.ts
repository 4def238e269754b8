import type { Convergence } from "./convergence.ts";
import type { TableResult } from "./report.ts";

const FONT = "font-family='system-ui, sans-serif' font-size='12'";
/** Legible on light and dark backgrounds. */
const colours = [
  "#3b7dd8",
  "#d9822b",
  "#2e9e6b",
  "#b0529f",
  "#c0504d",
  "#7a6bd1",
  "#3aa3a3",
  "#8a8f3c",
  "#888888",
];
const TEXT = "#777777";
const FAINT = "#77777740";
const PEER = "#9aa3ad";
const [BAR, THIN, LABEL, WIDTH] = [13, 7, 150, 860];

/** One half of a picture: a bar for each row's measurement, with PyTorch's below it, and a mark for the plan's. */
interface Bars {
  readonly head: string;
  readonly values: readonly (number | undefined)[];
  readonly spreads?: readonly (number | undefined)[];
  readonly peers: readonly (number | undefined)[];
  readonly plans?: readonly (number | undefined)[];
}

/**
 * Speed and memory of a table's rows, side by side: measured as bars, PyTorch's as thinner ones beneath, planned as a
 * mark. SVG.
 */
export function tablePicture({ rows }: TableResult): string {
  const peers = rows.map(({ peer }) => (peer === undefined || "none" in peer ? undefined : peer));
  const hasPeers = peers.some((peer) => peer !== undefined);
  const rowHeight = hasPeers ? 32 : 24;
  const halves: Bars[] = [
    {
      head: "samples/s",
      values: rows.map(({ measured }) => measured?.samplesPerSecond.mean),
      spreads: rows.map(({ measured }) => measured?.samplesPerSecond.deviation),
      peers: peers.map((peer) => peer?.samplesPerSecond.mean),
    },
    {
      head: "peak MB of all ranks",
      values: rows.map(({ measured }) => measured && measured.peakBytes / 1e6),
      peers: peers.map((peer) => peer && peer.peakBytes / 1e6),
      plans: rows.map(({ planned }) => planned && planned.totalBytes / 1e6),
    },
  ];
  const isPlanned = rows.some(({ planned }) => planned !== undefined);
  const names = rows.map(({ row, measured }, index) => {
    const y = 33 + index * rowHeight + 11;
    const refused = measured === undefined ? text(LABEL, y, "refused") : "";
    return text(LABEL - 8, y, row.name, "end") + refused;
  });
  const half = (WIDTH - LABEL) / 2;
  const drawn = halves.map((bars, side) =>
    halfPicture(bars, LABEL + side * half, half - 90, side, rowHeight),
  );
  const legend = [
    ...(hasPeers ? [swatch(PEER), `<tspan fill='${TEXT}'> PyTorch  </tspan>`] : []),
    ...(isPlanned ? [`<tspan fill='${colours[4]}'>|</tspan><tspan fill='${TEXT}'> planned</tspan>`] : []),
  ];
  const key = `<text x='${WIDTH - 10}' y='14' text-anchor='end' xml:space='preserve'>${legend.join("")}</text>`;
  return svg(38 + rowHeight * rows.length, [key, ...names, ...drawn]);
}

const swatch = (colour: string) => `<tspan fill='${colour}'>▬</tspan>`;

function halfPicture(bars: Bars, x: number, room: number, colour: number, rowHeight: number): string {
  const { head, values, spreads = [], peers, plans = [] } = bars;
  const ends = values.map((value = 0, index) => value + (spreads[index] ?? 0));
  const most = Math.max(1e-9, ...ends, ...[...peers, ...plans].map((value = 0) => value));
  const rows = values.map((value, index) => {
    if (value === undefined) return "";
    const y = 33 + index * rowHeight;
    const lengthOf = (of = 0) => (room * of) / most;
    const [spread, peer, plan] = [lengthOf(spreads[index]), peers[index], plans[index]];
    const behind = x + 5 + Math.max(lengthOf(ends[index]), plan === undefined ? 0 : lengthOf(plan));
    const middle = x + lengthOf(value);
    return [
      bar(x, y, lengthOf(value), BAR, colours[colour] ?? TEXT),
      spread > 0 ? stroke([middle - spread, middle + spread], [y + BAR / 2, y + BAR / 2], TEXT, 1) : "",
      plan === undefined
        ? ""
        : stroke([x + lengthOf(plan), x + lengthOf(plan)], [y - 2, y + BAR + 2], colours[4], 2),
      text(behind, y + 11, value.toFixed(1)),
      peer === undefined ? "" : bar(x, y + BAR + 1, lengthOf(peer), THIN, PEER),
      peer === undefined ? "" : text(x + lengthOf(peer) + 5, y + BAR + 9, peer.toFixed(1), "start", 10),
    ].join("");
  });
  return text(x, 14, head) + rows.join("");
}

function text(x: number, y: number, words: string, anchor = "start", size = 12): string {
  return `<text x='${x.toFixed(1)}' y='${y}' fill='${TEXT}' text-anchor='${anchor}' font-size='${size}'>${escaped(words)}</text>`;
}

function stroke([x1, x2]: readonly number[], [y1, y2]: readonly number[], colour = TEXT, width = 1): string {
  return `<line x1='${x1?.toFixed(1)}' x2='${x2?.toFixed(1)}' y1='${y1}' y2='${y2}' stroke='${colour}' stroke-width='${width}'/>`;
}

/** Losses of all strategies over the steps, with a logarithmic scale. SVG. */
export function convergencePicture(convergence: readonly Convergence[]): string {
  const height = 320;
  const [left, right, top, bottom] = [50, 190, 12, 30];
  const all = convergence.flatMap(({ lossesNats }) => lossesNats);
  const [low, high] = [Math.log(Math.min(...all)), Math.log(Math.max(...all))];
  const steps = Math.max(2, ...convergence.map(({ lossesNats }) => lossesNats.length));
  const x = (step: number) => left + ((WIDTH - left - right) * step) / (steps - 1);
  const y = (loss: number) =>
    top + ((height - top - bottom) * (high - Math.log(loss))) / Math.max(1e-9, high - low);
  const lines = convergence.map(({ lossesNats }, index) => {
    const points = lossesNats.map((loss, step) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
    // Dashes show the curves beneath where strategies learn the same.
    const dash = index === 0 ? "" : ` stroke-dasharray='6 ${4 + 3 * index}' stroke-dashoffset='${5 * index}'`;
    return `<polyline points='${points}' fill='none' stroke='${colours[index % colours.length]}' stroke-width='2'${dash}/>`;
  });
  const ticks = Array.from({ length: 5 }, (_, index) => Math.exp(low + ((high - low) * index) / 4)).map(
    (loss) =>
      stroke([left, WIDTH - right], [y(loss), y(loss)], FAINT) +
      text(left - 6, y(loss) + 4, loss.toFixed(2), "end"),
  );
  const names = convergence.map(
    ({ name }, index) =>
      bar(WIDTH - right + 16, top + index * 20, 12, 12, colours[index % colours.length] ?? TEXT) +
      text(WIDTH - right + 34, top + 10 + index * 20, name),
  );
  const ends = [
    text(left, height - 8, "step 1"),
    text(WIDTH - right, height - 8, `step ${steps}, nats a letter`, "end"),
  ];
  return svg(height, [...ticks, ...lines, ...names, ...ends]);
}

const bar = (x: number, y: number, width: number, height: number, colour: string) =>
  `<rect x='${x}' y='${y}' width='${width.toFixed(1)}' height='${height}' fill='${colour}'/>`;

function svg(height: number, parts: readonly string[]): string {
  return `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ${WIDTH} ${height}' width='${WIDTH}' height='${height}' ${FONT}>${parts.join("")}</svg>`;
}

/** Escapes text for a page. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
