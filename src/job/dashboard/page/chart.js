/** @import { ChartSpec, Series, Tables } from "./chart-specs.js" */
/** @import { Plot } from "./plot.js" */
import { colour } from "./colours.js";
import { integer } from "./figures.js";
import { align, drawPlot, fitPlot, isStack, pointAt, sumsOf } from "./plot.js";

/** One chart with its figures and keys. */
export class Chart {
  #spec;
  #shown;
  /** @type {readonly Series[]} */
  #series = [];
  /** Rows of each series, not stacked. @type {(number | null | undefined)[][]} */
  #values = [];
  /** The latest value of each series, NaN included. @type {readonly number[]} */
  #latest = [];
  /** @type {readonly number[]} */
  #marks = [];
  /** @type {Plot | undefined} */
  #plot;
  #figure = element("figure", "chart");
  #place = element("div", "plot");
  #value = document.createElement("data");
  #unit = element("span", "unit");
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
    figure.append(this.#value, this.#unit, this.#at);
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
    this.#latest = series.map((one) => one.values(tables).at(-1) ?? Number.NaN);
    this.#values = values;
    const known = this.#series.map(({ label }) => label).join();
    this.#series = series;
    const isEmpty = !values.some((rows) => rows.some((value) => value != null));
    this.#figure.classList.toggle("blank", isEmpty);
    this.#figure.hidden = isEmpty && (this.#spec.isRare ?? false);
    this.#unit.textContent = this.#spec.unit?.(tables) ?? "";
    this.#figure.dataset.points = String(x.length);
    if (isEmpty || this.#plot === undefined || known !== series.map(({ label }) => label).join()) {
      this.#plot?.destroy();
      this.#plot = isEmpty ? undefined : this.#draw();
    }
    this.#plot?.setData([x, ...(isStack(series) ? sumsOf(values) : values)]);
    this.#tell();
  }

  fit() {
    if (this.#plot !== undefined) fitPlot(this.#plot, this.#place);
  }

  recolour() {
    this.#plot?.redraw(false);
    this.#tell();
  }

  #draw() {
    const inDrawnOrder = isStack(this.#series) ? this.#series.toReversed() : this.#series;
    return drawPlot(this.#place, this.#spec, inDrawnOrder, {
      steps: this.#shown,
      marks: () => this.#marks,
      onCursor: () => this.#tell(),
    });
  }

  /** Writes the figures under the cursor, or the latest. */
  #tell() {
    const row = this.#plot?.cursor.idx ?? undefined;
    const at = row === undefined ? undefined : this.#plot?.data[0][row];
    const { format } = this.#spec;
    const shown = row === undefined ? this.#latest : this.#values.map((rows) => valueAt(rows, row));
    const sum = shown.reduce((total, value) => total + (value || 0), 0);
    const main = isStack(this.#series) ? sum : (shown[0] ?? Number.NaN);
    const value = this.#plot === undefined ? Number.NaN : main;
    this.#value.value = String(value);
    this.#value.textContent = format(value);
    this.#at.textContent = at === undefined ? "" : `step ${integer(at)}`;
    const keyed = this.#series.map((series, index) => ({ ...series, value: shown[index] ?? Number.NaN }));
    this.#tellKeys(keyed.length > 1 ? keyed.filter((key) => !Number.isNaN(key.value)) : []);
    const latest = `${this.#spec.title}: ${format(value)} ${this.#unit.textContent}`;
    this.#place.ariaLabel =
      at === undefined ? `${latest}. Arrow keys look back.` : `${latest}, step ${integer(at)}`;
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
}

/**
 * The value of a row, or the last one before it; NaN if there is none.
 * @param {(number | null | undefined)[]} rows
 * @param {number} row
 */
function valueAt(rows, row) {
  return rows.slice(0, row + 1).findLast((value) => value != null) ?? Number.NaN;
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
