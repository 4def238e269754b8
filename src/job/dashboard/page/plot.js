/** @import { ChartSpec, Series, Tables } from "./chart-specs.js" */
import { colour } from "./colours.js";
import { integer } from "./figures.js";
import uPlot from "./uplot.js";

/** @typedef {import("uplot")} Plot */

/**
 * The surroundings of a plot, read while it is drawn.
 * @typedef {object} Surroundings
 * @property {() => { from: number; to: number }} steps that all charts show
 * @property {() => readonly number[]} marks steps where a line stands
 * @property {() => void} onCursor
 */

const height = 148;
/** Space to the right of the newest point, and width of a label's digit, in pixels. */
const rightRoom = 8;
const digitWidth = 6;
const cursors = uPlot.sync("step");

/**
 * Draws the axes and series of a chart, without data yet.
 * @param {HTMLElement} place
 * @param {ChartSpec} spec
 * @param {readonly Series[]} series in the order in which they are painted
 * @param {Surroundings} surroundings
 */
export function drawPlot(place, spec, series, { steps, marks, onCursor }) {
  const { format, fromZero = false, upTo, isSteady = false } = spec;
  const axis = { stroke: () => colour("muted"), font: `11px ${fontFamily()}`, ticks: { show: false } };
  return new uPlot(
    {
      width: place.clientWidth,
      height,
      padding: [6, rightRoom, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: cursors.key, setSeries: false, scales: ["x", null] },
        y: false,
        drag: { x: false, y: false },
        points: {
          size: 6,
          fill: (_, i) => colour(series[i - 1]?.colour ?? "blue"),
          width: 0,
        },
      },
      scales: {
        x: { time: false, range: () => [steps().from, steps().to] },
        y: {
          range: (u, min, max) => yRange(min, isSteady ? usual(u.data) : max, fromZero, upTo),
        },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 24, space: 52, values: stepLabels },
        {
          ...axis,
          grid: { stroke: () => colour("line"), width: 1 },
          size: 52,
          space: 34,
          gap: 6,
          values: (_, splits) => splits.map((value) => brief(format(value))),
        },
      ],
      series: [{}, ...series.map(look)],
      hooks: { setCursor: [onCursor], draw: [(u) => drawMarks(u, marks())] },
    },
    undefined,
    place,
  );
}

/** @param {Plot} plot @param {HTMLElement} place */
export function fitPlot(plot, place) {
  plot.setSize({ width: place.clientWidth, height });
}

/** @param {readonly Series[]} series */
export function isStack(series) {
  return series.every(({ look }) => look === "stack");
}

/**
 * The sums that a stack is painted with, the topmost first, so that lower ones are painted over it.
 * @param {readonly (number | null | undefined)[][]} values
 */
export function sumsOf(values) {
  /** @type {number[]} */
  let below = [];
  const sums = values.map((rows) => {
    below = rows.map((value, row) => (value ?? 0) + (below[row] ?? 0));
    return below;
  });
  return sums.toReversed();
}

/**
 * Moves the cursor, and with it that of the other charts; uPlot's types lack this.
 * @param {Plot} plot
 * @param {number} left
 * @param {number} top
 */
export function pointAt(plot, left, top) {
  const setCursor = /** @type {(at: object, fire: boolean, publish: boolean) => void} */ (plot.setCursor);
  setCursor({ left, top }, true, true);
}

/**
 * Series over one x axis; the steps of series from another table are added to it.
 * @param {Tables} tables
 * @param {keyof Tables} table
 * @param {readonly Series[]} series
 * @returns {[number[], ...(number | null | undefined)[][]]}
 */
export function align(tables, table, series) {
  const { step = [] } = tables[table];
  const others = /** @type {const} */ (["evaluations"]).filter((name) => name !== table);
  const rows = series.map(({ values }) =>
    values(tables).map((value) => (Number.isFinite(value) ? value : null)),
  );
  const isOther = series.map(({ look }) => look === "points");
  if (!isOther.includes(true)) return [[...step], ...rows];
  const own = rows.filter((_, index) => !isOther[index]);
  const other = rows.filter((_, index) => isOther[index]);
  const otherSteps = tables[others[0] ?? "evaluations"].step ?? [];
  const joined = uPlot.join([
    [[...step], ...own],
    [[...otherSteps], ...other],
  ]);
  return /** @type {[number[], ...(number | null | undefined)[][]]} */ (/** @type {unknown} */ (joined));
}

/** @param {Plot} u @param {readonly number[]} steps */
function drawMarks(u, steps) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  const { min = 0, max = 0 } = u.scales.x ?? {};
  for (const step of steps) {
    if (step < (min ?? 0) || step > (max ?? 0)) continue;
    const x = Math.round(u.valToPos(step, "x", true));
    ctx.strokeStyle = colour("vermilion");
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** @param {Series} series @returns {import("uplot").Series} */
function look({ look, colour: name, label }) {
  const stroke = () => colour(name);
  const base = { label, spanGaps: true, points: { show: false } };
  if (look === "stack")
    return { ...base, fill: stroke, stroke: () => colour("paper"), width: 0.5, fillTo: 0 };
  if (look === "faint") return { ...base, stroke: () => colour(`${name}-faint`), width: 1 };
  if (look === "line") return { ...base, stroke, width: 1.5 };
  return { ...base, stroke, width: 1, points: { show: true, size: 5, fill: stroke, stroke } };
}

/**
 * @param {number | null} min
 * @param {number | null} max
 * @param {boolean} fromZero
 * @param {number | undefined} upTo
 * @returns {[number, number]}
 */
function yRange(min, max, fromZero, upTo) {
  if (min === null || max === null) return [0, upTo ?? 1];
  const low = fromZero ? Math.min(0, min) : min;
  const room = 0.06 * (max - low || Math.abs(max) || 1);
  return [fromZero ? low : low - room, upTo ?? max + room];
}

/** Labels of the x axis; a label that would be cut off at the right end is left out. @param {Plot} u @param {readonly number[]} steps */
function stepLabels(u, steps) {
  return steps.map((step) => {
    const label = integer(step);
    const end = u.valToPos(step, "x") + (label.length * digitWidth) / 2;
    return end > u.over.clientWidth + rightRoom ? "" : label;
  });
}

/** A limit above all values but the greatest fiftieth. @param {import("uplot").AlignedData} data */
function usual(data) {
  const values = data.slice(1).flatMap((rows) => Array.from(rows).filter((value) => value != null));
  const sorted = values.toSorted((a, b) => a - b);
  return 1.1 * (sorted[Math.floor(0.98 * (sorted.length - 1))] ?? 1);
}

/** Drops trailing zeros: 4.0000 → 4, 5.00e−4 → 5e−4. @param {string} figure */
function brief(figure) {
  return figure.replace(/\.(\d*?)0+(?!\d)/, (_, digits) => (digits === "" ? "" : `.${digits}`));
}

function fontFamily() {
  return getComputedStyle(document.body).fontFamily;
}
