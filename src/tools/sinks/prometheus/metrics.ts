import { figuresOf, type Labels, type TroupeEvent } from "../../../job/events/index.ts";

const secondsPerMs = 1e-3;

interface Metric {
  readonly type: "gauge" | "counter";
  readonly help: string;
  /** Values by labels, in Prometheus' notation. */
  readonly series: Map<string, number>;
}

/**
 * The latest value of each of a run's figures, in Prometheus' text format.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats, text format 0.0.4
 */
export class RunMetrics {
  readonly #metrics = new Map<string, Metric>();

  constructor() {
    for (const { metric, kind, help = "" } of figuresOf()) {
      if (metric === undefined || this.#metrics.has(metric)) continue;
      this.#metrics.set(metric, { type: kind === "counter" ? kind : "gauge", help, series: new Map() });
    }
  }

  take(event: TroupeEvent): void {
    for (const { metric = "", kind, unit, read } of figuresOf(event.kind)) {
      const series = this.#metrics.get(metric)?.series;
      if (series === undefined) continue;
      // New facts replace the old ones.
      if (kind === "info") series.clear();
      for (const { value, labels } of read(event)) {
        const key = textOf(labels);
        const base = kind === "counter" ? (series.get(key) ?? 0) : 0;
        series.set(key, base + (unit === "ms" ? value * secondsPerMs : value));
      }
    }
  }

  /** All metrics that have a value. */
  text(): string {
    const lines: string[] = [];
    for (const [name, { type, help, series }] of this.#metrics) {
      if (series.size === 0) continue;
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
      for (const [labels, value] of series) lines.push(`${name}${labels} ${numberText(value)}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

function textOf(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
