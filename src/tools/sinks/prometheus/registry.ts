/** What a metric is: a value that comes and goes, or a count that only rises. */
export type MetricType = "gauge" | "counter";

/** Names and values that tell the series of one metric apart. */
export type Labels = Readonly<Record<string, string | number>>;

interface Metric {
  readonly type: MetricType;
  readonly help: string;
  /** By labels, as they are written. */
  readonly series: Map<string, number>;
}

/**
 * The latest value of each metric, written as Prometheus reads them.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats, text format 0.0.4
 */
export class Registry {
  readonly #metrics = new Map<string, Metric>();

  /** Declares a metric; only what has a value is written. */
  declare(name: string, type: MetricType, help: string): void {
    this.#metrics.set(name, { type, help, series: new Map() });
  }

  set(name: string, value: number, labels: Labels = {}): void {
    this.#seriesOf(name).set(textOf(labels), value);
  }

  add(name: string, value: number, labels: Labels = {}): void {
    const series = this.#seriesOf(name);
    const key = textOf(labels);
    series.set(key, (series.get(key) ?? 0) + value);
  }

  /** Forgets every value of a metric: what it told of is gone. */
  clear(name: string): void {
    this.#seriesOf(name).clear();
  }

  /** All that has a value. */
  text(): string {
    const lines: string[] = [];
    for (const [name, { type, help, series }] of this.#metrics) {
      if (series.size === 0) continue;
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
      for (const [labels, value] of series) lines.push(`${name}${labels} ${numberText(value)}`);
    }
    return `${lines.join("\n")}\n`;
  }

  #seriesOf(name: string): Map<string, number> {
    const metric = this.#metrics.get(name);
    if (metric === undefined) throw new Error(`[prometheus] ${name} was not declared`);
    return metric.series;
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
