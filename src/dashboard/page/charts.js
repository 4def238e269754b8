/** @import { Columns } from "./tables.js" */

import { bytes, count, loss, milliseconds, percent, significant, whole } from "./figures.js";
import uPlot from "./uplot.js";

/** @typedef {import("uplot")} Plot */

/**
 * What one chart shows. A series is a column, or is made of columns; `stack` puts those of its kind on top of each other.
 * @typedef {object} Series
 * @property {string} label
 * @property {string} colour name of a colour of the style sheet
 * @property {"line" | "faint" | "points" | "stack"} look
 * @property {(tables: Tables) => readonly number[]} values
 */

/**
 * @typedef {object} Tables
 * @property {Columns} steps
 * @property {Columns} evaluations
 * @property {Columns} memory
 */

/**
 * @typedef {object} ChartSpec
 * @property {string} id
 * @property {string} title
 * @property {string} [unit] behind the figure
 * @property {keyof Tables} table whose steps are the x axis
 * @property {(tables: Tables) => readonly Series[]} series the first gives the figure, or the sum of a stack
 * @property {(value: number) => string} format
 * @property {boolean} [fromZero]
 * @property {number} [upTo]
 * @property {boolean} [isSteady] few values far above the others are no news, and run out of the picture
 */

const column =
  (/** @type {keyof Tables} */ table, /** @type {string} */ name) => /** @param {Tables} tables */ (tables) =>
    tables[table][name] ?? [];

/** Colours of kinds of memory, the same in every run, from the bottom up; a kind that is not here is grey, and lowest. */
const memoryColours = /** @type {Record<string, string>} */ ({
  parameters: "blue",
  master: "sky",
  optimizer: "green",
  offload: "teal",
  gradients: "vermilion",
  activations: "ochre",
  snapshot: "purple",
  staging: "rose",
});
const memoryOrder = Object.keys(memoryColours);

/** @type {readonly ChartSpec[]} */
const specs = [
  {
    id: "loss",
    title: "Loss",
    unit: "nats",
    table: "steps",
    format: loss,
    series: () => [
      { label: "each step", colour: "blue", look: "faint", values: column("steps", "lossNats") },
      { label: "smoothed", colour: "blue", look: "line", values: smoothed("lossNats") },
      { label: "held out", colour: "vermilion", look: "points", values: column("evaluations", "lossNats") },
    ],
  },
  {
    id: "gradient-norm",
    title: "Gradient norm",
    table: "steps",
    format: significant,
    fromZero: true,
    series: () => [{ label: "norm", colour: "blue", look: "line", values: column("steps", "gradientNorm") }],
  },
  {
    id: "learning-rate",
    title: "Learning rate",
    table: "steps",
    format: significant,
    fromZero: true,
    series: () => [{ label: "rate", colour: "blue", look: "line", values: column("steps", "learningRate") }],
  },
  {
    id: "throughput",
    title: "Throughput",
    unit: "tokens/s",
    table: "steps",
    format: count,
    fromZero: true,
    isSteady: true,
    series: () => [
      { label: "smoothed", colour: "blue", look: "line", values: throughput },
      { label: "each step", colour: "blue", look: "faint", values: column("steps", "tokensPerSecond") },
    ],
  },
  {
    id: "step-time",
    title: "Step time",
    table: "steps",
    format: milliseconds,
    fromZero: true,
    isSteady: true,
    series: () => [
      { label: "compute", colour: "blue", look: "stack", values: computing },
      { label: "exposed", colour: "vermilion", look: "stack", values: smoothed("exposedMs") },
      { label: "data", colour: "ochre", look: "stack", values: smoothed("dataMs") },
    ],
  },
  {
    id: "overlap",
    title: "Communication hidden",
    table: "steps",
    format: percent,
    fromZero: true,
    upTo: 1,
    series: () => [
      { label: "smoothed", colour: "green", look: "line", values: smoothed("overlap") },
      { label: "each step", colour: "green", look: "faint", values: column("steps", "overlap") },
    ],
  },
  {
    id: "memory",
    title: "Memory in tensors",
    table: "memory",
    format: bytes,
    fromZero: true,
    series: ({ memory }) =>
      Object.keys(memory)
        .filter((kind) => kind !== "step" && (memory[kind] ?? []).some((value) => value > 0))
        .sort((a, b) => memoryOrder.indexOf(a) - memoryOrder.indexOf(b))
        .map((kind) => ({
          label: kind,
          colour: memoryColours[kind] ?? "grey",
          look: "stack",
          values: column("memory", kind),
        })),
  },
];

/** What of a step was neither waiting for other ranks nor for data, smoothed. @param {Tables} tables */
function computing(tables) {
  const [duration = [], exposed = [], data = []] = ["durationMs", "exposedMs", "dataMs"].map((field) =>
    smoothed(field)(tables),
  );
  return duration.map((value, row) => Math.max(0, value - (exposed[row] ?? 0) - (data[row] ?? 0)));
}

/** Tokens over time, both smoothed: one step that was told late does not make the next one fast. @param {Tables} tables */
function throughput(tables) {
  const { tokensPerSecond = [], durationMs = [] } = tables.steps;
  const numTokens = tokensPerSecond.map((rate, row) => (rate * (durationMs[row] ?? 0)) / 1000);
  const tokens = smooth(tables.steps, numTokens);
  const durations = smooth(tables.steps, durationMs);
  return tokens.map((value, row) => (1000 * value) / (durations[row] ?? Number.NaN));
}

const smoothed =
  (/** @type {string} */ field) =>
  /** @param {Tables} tables */
  ({ steps }) =>
    smooth(steps, steps[field] ?? []);

/**
 * A mean that follows within a hundredth of what is shown, by steps and not by rows, which may be thinned.
 * @param {Columns} steps
 * @param {readonly number[]} values
 */
function smooth({ step = [] }, values) {
  const span = Math.max(3, ((step.at(-1) ?? 0) - (step[0] ?? 0)) / 100);
  let mean = Number.NaN;
  return values.map((value, row) => {
    const weight = 1 - Math.exp(-((step[row] ?? 0) - (step[row - 1] ?? 0)) / span);
    if (Number.isFinite(value)) mean = Number.isFinite(mean) ? mean + weight * (value - mean) : value;
    return mean;
  });
}

/** All the charts, with one cursor for all. */
export class Charts {
  #charts;
  #shown = { from: 0, to: 1 };

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#charts = specs.map((spec) => new Chart(spec, () => this.#shown));
    place.append(...this.#charts.map(({ figure }) => figure));
    const resized = new ResizeObserver(() => {
      for (const chart of this.#charts) chart.fit();
    });
    resized.observe(place);
    document.addEventListener("theme", () => {
      for (const chart of this.#charts) chart.recolour();
    });
  }

  /**
   * @param {Tables} tables
   * @param {readonly number[]} marks steps where a line stands
   */
  show(tables, marks) {
    const { step = [] } = tables.steps;
    const from = step[0] ?? 0;
    this.#shown = { from, to: Math.max(from + 1, step.at(-1) ?? 1) };
    for (const chart of this.#charts) chart.show(tables, marks);
  }
}

const height = 148;
const cursors = uPlot.sync("step");

class Chart {
  #spec;
  #shown;
  /** @type {readonly Series[]} */
  #series = [];
  /** Rows of each series as they were told, not stacked. @type {(number | null | undefined)[][]} */
  #values = [];
  /** @type {readonly number[]} */
  #marks = [];
  /** @type {Plot | undefined} */
  #plot;
  #figure = element("figure", "chart");
  #place = element("div", "plot");
  #value = document.createElement("data");
  #at = element("span", "at");
  #keys = element("ul", "keys");
  #empty = element("p", "empty");

  /**
   * @param {ChartSpec} spec
   * @param {() => { from: number; to: number }} shown steps that all charts show
   */
  constructor(spec, shown) {
    this.#spec = spec;
    this.#shown = shown;
    const caption = element("figcaption");
    const title = element("h2");
    title.textContent = spec.title;
    const figure = element("p", "figure");
    const unit = element("span", "unit");
    unit.textContent = spec.unit ?? "";
    figure.append(this.#value, unit, this.#at);
    caption.append(title, figure);
    this.#empty.textContent = "Nothing measured yet.";
    this.#figure.id = spec.id;
    this.#place.tabIndex = 0;
    this.#place.role = "img";
    this.#place.addEventListener("keydown", (event) => this.#move(event));
    this.#place.addEventListener("blur", () => this.#leave());
    this.#figure.append(caption, this.#keys, this.#place, this.#empty);
  }

  get figure() {
    return this.#figure;
  }

  /**
   * @param {Tables} tables
   * @param {readonly number[]} marks steps where a line stands
   */
  show(tables, marks) {
    const series = this.#spec.series(tables);
    this.#marks = marks;
    const [x, ...values] = align(tables, this.#spec.table, series);
    this.#values = values;
    const known = this.#series.map(({ label }) => label).join();
    this.#series = series;
    const isEmpty = !values.some((rows) => rows.some((value) => value != null));
    this.#figure.classList.toggle("blank", isEmpty);
    this.#figure.dataset.points = String(x.length);
    if (isEmpty || this.#plot === undefined || known !== series.map(({ label }) => label).join()) {
      this.#plot?.destroy();
      this.#plot = isEmpty ? undefined : this.#draw();
    }
    this.#plot?.setData([x, ...this.#stacked()]);
    this.#tell();
  }

  fit() {
    this.#plot?.setSize({ width: this.#place.clientWidth, height });
  }

  recolour() {
    colours.clear();
    this.#plot?.redraw(false);
    this.#tell();
  }

  #draw() {
    const { format, fromZero = false, upTo, isSteady = false } = this.#spec;
    const axis = { stroke: () => colour("muted"), font: `11px ${fontFamily()}`, ticks: { show: false } };
    return new uPlot(
      {
        width: this.#place.clientWidth,
        height,
        padding: [6, 8, 0, 0],
        legend: { show: false },
        cursor: {
          sync: { key: cursors.key, setSeries: false, scales: ["x", null] },
          y: false,
          drag: { x: false, y: false },
          points: {
            size: 6,
            fill: (_, i) => colour(this.#inDrawnOrder()[i - 1]?.colour ?? "blue"),
            width: 0,
          },
        },
        scales: {
          x: { time: false, range: () => [this.#shown().from, this.#shown().to] },
          y: {
            range: (u, min, max) => yRange(min, isSteady ? usual(u.data) : max, fromZero, upTo),
          },
        },
        axes: [
          { ...axis, grid: { show: false }, size: 24, space: 52, values: (_, splits) => splits.map(whole) },
          {
            ...axis,
            grid: { stroke: () => colour("line"), width: 1 },
            size: 52,
            space: 34,
            gap: 6,
            values: (_, splits) => splits.map((value) => brief(format(value))),
          },
        ],
        series: [{}, ...this.#inDrawnOrder().map(look)],
        hooks: { setCursor: [() => this.#tell()], draw: [(u) => this.#drawMarks(u)] },
      },
      undefined,
      this.#place,
    );
  }

  /** Of a stack the topmost comes first, so that those under it are painted over it. */
  #inDrawnOrder() {
    return this.#isStack() ? this.#series.toReversed() : this.#series;
  }

  #isStack() {
    return this.#series.every((one) => one.look === "stack");
  }

  /** What is drawn, in drawn order: of a stack, the sums. */
  #stacked() {
    if (!this.#isStack()) return this.#values;
    /** @type {(number | null)[]} */
    let below = [];
    const sums = this.#values.map((rows) => {
      below = rows.map((value, row) => (value ?? 0) + (below[row] ?? 0));
      return below;
    });
    return sums.toReversed();
  }

  /** Writes the figures under the cursor, or the latest. */
  #tell() {
    const row = this.#plot?.cursor.idx ?? undefined;
    const at = row === undefined ? undefined : this.#plot?.data[0][row];
    const { format } = this.#spec;
    const shown = this.#series.map((_, index) => valueAt(this.#values[index] ?? [], row));
    const sum = shown.reduce((total, value) => total + (value || 0), 0);
    const main = this.#isStack() ? sum : (shown[0] ?? Number.NaN);
    const value = this.#plot === undefined ? Number.NaN : main;
    this.#value.value = String(value);
    this.#value.textContent = format(value);
    this.#at.textContent = at === undefined ? "" : `step ${whole(at)}`;
    const keyed = this.#series.map((series, index) => ({ ...series, value: shown[index] ?? Number.NaN }));
    this.#tellKeys(keyed.length > 1 ? keyed.filter((key) => !Number.isNaN(key.value)) : []);
    const latest = `${this.#spec.title}: ${format(value)} ${this.#spec.unit ?? ""}`;
    this.#place.ariaLabel =
      at === undefined ? `${latest}. Arrow keys look back.` : `${latest}, step ${whole(at)}`;
  }

  /** @param {readonly (Series & { readonly value: number })[]} keyed */
  #tellKeys(keyed) {
    while (this.#keys.children.length > keyed.length) this.#keys.lastElementChild?.remove();
    for (const [index, { label, colour: name, look, value }] of keyed.entries()) {
      const key = this.#keys.children[index] ?? this.#keys.appendChild(newKey());
      const [swatch, text, figure] = /** @type {HTMLElement[]} */ ([...key.children]);
      if (swatch) swatch.style.background = colour(look === "faint" ? `${name}-faint` : name);
      if (text) text.textContent = label;
      if (figure) figure.textContent = this.#spec.format(value);
    }
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const plot = this.#plot;
    if (plot === undefined) return;
    if (event.key === "Escape") return this.#leave();
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    const last = plot.data[0].length - 1;
    const stride = event.shiftKey ? 20 : 1;
    const row = Math.min(last, Math.max(0, (plot.cursor.idx ?? last) + way * stride));
    pointAt(plot, plot.valToPos(plot.data[0][row] ?? 0, "x"), 1);
  }

  #leave() {
    if (this.#plot !== undefined) pointAt(this.#plot, -10, -10);
  }

  /** @param {Plot} u */
  #drawMarks(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    for (const step of this.#marks) {
      if (step < this.#shown().from || step > this.#shown().to) continue;
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
}

/**
 * Moves the cursor, and that of the other charts with it, which uPlot's own types do not tell of.
 * @param {Plot} plot
 * @param {number} left
 * @param {number} top
 */
function pointAt(plot, left, top) {
  const setCursor = /** @type {(at: object, fire: boolean, publish: boolean) => void} */ (plot.setCursor);
  setCursor({ left, top }, true, true);
}

/**
 * Series over one x axis; of those that come from another table, the steps are added to it.
 * @param {Tables} tables
 * @param {keyof Tables} table
 * @param {readonly Series[]} series
 * @returns {[number[], ...(number | null | undefined)[][]]}
 */
function align(tables, table, series) {
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

/**
 * The value of a row, or the last one there is before it; NaN where there is none.
 * @param {(number | null | undefined)[]} rows
 * @param {number | undefined} row undefined for the last
 */
function valueAt(rows, row = rows.length - 1) {
  return rows.slice(0, row + 1).findLast((value) => value != null) ?? Number.NaN;
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

/** Above the greatest of all values but a fiftieth. @param {import("uplot").AlignedData} data */
function usual(data) {
  const values = data.slice(1).flatMap((rows) => Array.from(rows).filter((value) => value != null));
  const sorted = values.toSorted((a, b) => a - b);
  return 1.1 * (sorted[Math.floor(0.98 * (sorted.length - 1))] ?? 1);
}

/** Without zeros at the end: 4.0000 → 4, 5.00e−4 → 5e−4. @param {string} figure */
function brief(figure) {
  return figure.replace(/\.(\d*?)0+(?!\d)/, (_, digits) => (digits === "" ? "" : `.${digits}`));
}

/** @type {Map<string, string>} */
const colours = new Map();

/** A colour of the style sheet, in the theme that is shown. @param {string} name */
export function colour(name) {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}

// Before the charts and lanes, which draw with them.
document.addEventListener("theme", () => colours.clear());

function fontFamily() {
  return getComputedStyle(document.body).fontFamily;
}

function newKey() {
  const key = element("li");
  key.append(element("i"), element("span"), element("b"));
  return key;
}

/** @param {string} tag @param {string} [name] @returns {HTMLElement} */
function element(tag, name) {
  const made = document.createElement(tag);
  if (name !== undefined) made.className = name;
  return made;
}
