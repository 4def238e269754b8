/** @import { Tables } from "./chart-specs.js" */
import { Chart } from "./chart.js";
import { chartSpecs } from "./chart-specs.js";

/** All charts, with one common cursor. */
export class Charts {
  #charts;
  #shown = { from: 0, to: 1 };

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#charts = chartSpecs.map((spec) => new Chart(spec, () => this.#shown));
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
