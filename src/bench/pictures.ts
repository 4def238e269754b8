import type { Convergence } from "./convergence.ts";
import type { TableResult } from "./report.ts";

const FONT = "font-family='system-ui, sans-serif' font-size='12'";
/** Legible on light and on dark ground. */
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
const [ROW, BAR, LABEL, WIDTH] = [24, 13, 170, 760];

/** Speed and memory of a table's rows, side by side: measured as bars, what was planned as a mark. SVG. */
export function tablePicture({ rows }: TableResult): string {
  const height = 34 + ROW * rows.length;
  const half = (WIDTH - LABEL) / 2;
  const speeds = rows.map(({ measured }) => measured?.samplesPerSecond.mean ?? 0);
  const sizes = rows.map(({ measured }) => (measured?.peakBytes ?? 0) / 1e6);
  const plans = rows.map(({ planned }) => (planned?.totalBytes ?? 0) / 1e6);
  const spreads = rows.map(({ measured }) => measured?.samplesPerSecond.deviation ?? 0);
  const fastest = Math.max(1e-9, ...speeds.map((speed, index) => speed + (spreads[index] ?? 0)));
  const largest = Math.max(1e-9, ...sizes, ...plans);
  const room = half - 70;
  const bars = rows.map(({ row, measured }, index) => {
    const y = 28 + index * ROW;
    const speed = (room * (speeds[index] ?? 0)) / fastest;
    const size = (room * (sizes[index] ?? 0)) / largest;
    const plan = (room * (plans[index] ?? 0)) / largest;
    const text = (x: number, words: string, anchor = "start") =>
      `<text x='${x.toFixed(1)}' y='${y + 11}' fill='${TEXT}' text-anchor='${anchor}'>${escaped(words)}</text>`;
    if (measured === undefined) return text(LABEL - 8, row.name, "end") + text(LABEL, "refused");
    const { mean, deviation } = measured.samplesPerSecond;
    const spread = (room * deviation) / fastest;
    return [
      text(LABEL - 8, row.name, "end"),
      bar(LABEL, y, speed, 0),
      `<line x1='${(LABEL + speed - spread).toFixed(1)}' x2='${(LABEL + speed + spread).toFixed(1)}' y1='${y + BAR / 2}' y2='${y + BAR / 2}' stroke='${TEXT}'/>`,
      text(LABEL + speed + spread + 5, mean.toFixed(1)),
      bar(LABEL + half, y, size, 1),
      plan > 0
        ? `<line x1='${(LABEL + half + plan).toFixed(1)}' x2='${(LABEL + half + plan).toFixed(1)}' y1='${y - 2}' y2='${y + BAR + 2}' stroke='${colours[4]}' stroke-width='2'/>`
        : "",
      text(LABEL + half + Math.max(size, plan) + 5, (sizes[index] ?? 0).toFixed(1)),
    ].join("");
  });
  const isPlanned = plans.some((plan) => plan > 0);
  const heads = [
    `<text x='${LABEL}' y='14' fill='${TEXT}'>samples/s</text>`,
    `<text x='${LABEL + half}' y='14' fill='${TEXT}'>peak MB of all ranks${isPlanned ? `; <tspan fill='${colours[4]}'>| planned</tspan>` : ""}</text>`,
  ];
  return svg(height, [...heads, ...bars]);
}

/** Losses of all strategies over the steps, on a logarithmic scale of nats. SVG. */
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
    // Where strategies learn the same, dashes let those beneath be seen.
    const dash = index === 0 ? "" : ` stroke-dasharray='6 ${4 + 3 * index}' stroke-dashoffset='${5 * index}'`;
    return `<polyline points='${points}' fill='none' stroke='${colours[index % colours.length]}' stroke-width='2'${dash}/>`;
  });
  const ticks = Array.from({ length: 5 }, (_, index) => Math.exp(low + ((high - low) * index) / 4)).map(
    (loss) =>
      `<line x1='${left}' x2='${WIDTH - right}' y1='${y(loss)}' y2='${y(loss)}' stroke='${TEXT}' stroke-opacity='0.25'/>` +
      `<text x='${left - 6}' y='${y(loss) + 4}' fill='${TEXT}' text-anchor='end'>${loss.toFixed(2)}</text>`,
  );
  const names = convergence.map(
    ({ name }, index) =>
      `<rect x='${WIDTH - right + 16}' y='${top + index * 20}' width='12' height='12' fill='${colours[index % colours.length]}'/>` +
      `<text x='${WIDTH - right + 34}' y='${top + 10 + index * 20}' fill='${TEXT}'>${escaped(name)}</text>`,
  );
  const ends = [
    `<text x='${left}' y='${height - 8}' fill='${TEXT}'>step 1</text>`,
    `<text x='${WIDTH - right}' y='${height - 8}' fill='${TEXT}' text-anchor='end'>step ${steps}, nats a letter</text>`,
  ];
  return svg(height, [...ticks, ...lines, ...names, ...ends]);
}

const bar = (x: number, y: number, width: number, colour: number) =>
  `<rect x='${x}' y='${y}' width='${width.toFixed(1)}' height='${BAR}' fill='${colours[colour]}'/>`;

function svg(height: number, parts: readonly string[]): string {
  return `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ${WIDTH} ${height}' width='${WIDTH}' height='${height}' ${FONT}>${parts.join("")}</svg>`;
}

/** As text of a page. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
