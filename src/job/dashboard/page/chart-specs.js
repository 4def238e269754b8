/** @import { Columns } from "./tables.js" */
import { bytes, count, loss, milliseconds, percent, significant } from "./figures.js";

/**
 * One chart. A series is a column, or computed from columns; `stack` draws its series on top of each other.
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
 * @property {Columns} rollouts
 */

/**
 * @typedef {object} ChartSpec
 * @property {string} id
 * @property {string} title
 * @property {(tables: Tables) => string} [unit] behind the figure
 * @property {boolean} [isRare] most runs lack it: it is then left out
 * @property {keyof Tables} table whose steps are the x axis
 * @property {(tables: Tables) => readonly Series[]} series the first gives the figure, or the sum of a stack
 * @property {(value: number) => string} format
 * @property {boolean} [fromZero]
 * @property {number} [upTo]
 * @property {boolean} [isSteady] a few values far above the others are unimportant and may be cut off
 */

const column =
  (/** @type {keyof Tables} */ table, /** @type {string} */ name) => /** @param {Tables} tables */ (tables) =>
    tables[table][name] ?? [];

/** Colours of kinds of memory, the same in every run, from the bottom up; other kinds are grey and lowest. */
// biome-ignore format: a list
const memoryColours = /** @type {Record<string, string>} */ ({
  parameters: "blue", master: "sky", optimizer: "green", offload: "teal", gradients: "vermilion",
  activations: "ochre", snapshot: "purple", staging: "rose",
});
const memoryOrder = Object.keys(memoryColours);

/** The charts, in order. @type {readonly ChartSpec[]} */
// biome-ignore format: a table, with a series on each line
export const chartSpecs = [
  { id: "loss", title: "Loss", unit: () => "nats", table: "steps", format: loss, series: () => [
    { label: "each step", colour: "blue", look: "faint", values: column("steps", "lossNats") },
    { label: "smoothed", colour: "blue", look: "line", values: smoothed("lossNats") },
    { label: "held out", colour: "vermilion", look: "points", values: column("evaluations", "lossNats") },
  ] },
  { id: "gradient-norm", title: "Gradient norm", table: "steps", format: significant, fromZero: true, series: () => [
    { label: "norm", colour: "blue", look: "line", values: column("steps", "gradientNorm") },
  ] },
  { id: "learning-rate", title: "Learning rate", table: "steps", format: significant, fromZero: true, series: () => [
    { label: "rate", colour: "blue", look: "line", values: column("steps", "learningRate") },
  ] },
  { id: "throughput", title: "Throughput", unit: (tables) => (countsTokens(tables) ? "tokens/s" : "samples/s"),
    table: "steps", format: count, fromZero: true, isSteady: true, series: (tables) => [
    { label: "smoothed", colour: "blue", look: "line", values: throughput },
    { label: "each step", colour: "blue", look: "faint", values: column("steps", rateOf(tables)) },
  ] },
  { id: "step-time", title: "Step time", table: "steps", format: milliseconds, fromZero: true, isSteady: true, series: () => [
    { label: "compute", colour: "blue", look: "stack", values: computing },
    { label: "exposed", colour: "vermilion", look: "stack", values: smoothed("exposedMs") },
    { label: "data", colour: "ochre", look: "stack", values: smoothed("dataMs") },
  ] },
  { id: "overlap", title: "Communication hidden", table: "steps", format: percent, fromZero: true, upTo: 1, series: () => [
    { label: "smoothed", colour: "green", look: "line", values: smoothed("overlap") },
    { label: "each step", colour: "green", look: "faint", values: column("steps", "overlap") },
  ] },
  { id: "memory", title: "Memory in tensors", table: "memory", format: bytes, fromZero: true, series: kindsOf },
  rolloutChart("reward", "Reward", "meanReward", significant),
  rolloutChart("length", "Tokens of a text", "meanTokens", significant),
  rolloutChart("kl", "Divergence from the reference", "klNats", loss, "nats"),
  rolloutChart("staleness", "Staleness", "staleness", significant, "rounds"),
  { id: "named-losses", title: "Named losses", unit: () => "nats", table: "steps", format: loss, isRare: true,
    series: (tables) => named(tables, "loss") },
  { id: "metrics", title: "Metrics", table: "steps", format: significant, isRare: true, series: (tables) => named(tables, "metric") },
];

/**
 * @param {string} id
 * @param {string} title
 * @param {string} name of the column
 * @param {ChartSpec["format"]} format
 * @param {string} [unit]
 * @returns {ChartSpec}
 */
function rolloutChart(id, title, name, format, unit = "") {
  const line = /** @type {const} */ ("line");
  const series = () => [{ label: title, colour: "purple", look: line, values: column("rollouts", name) }];
  return { id, title, unit: () => unit, table: "rollouts", format, isRare: true, series };
}

/** A layer for each kind of memory. @param {Tables} tables @returns {readonly Series[]} */
function kindsOf({ memory }) {
  return Object.keys(memory)
    .filter((kind) => kind !== "step" && (memory[kind] ?? []).some((value) => value > 0))
    .sort((a, b) => memoryOrder.indexOf(a) - memoryOrder.indexOf(b))
    .map((kind) => ({
      label: kind,
      colour: memoryColours[kind] ?? "grey",
      look: "stack",
      values: column("memory", kind),
    }));
}

/** Time of a step not spent waiting for other ranks or for data, smoothed. @param {Tables} tables */
function computing(tables) {
  const [duration = [], exposed = [], data = []] = ["durationMs", "exposedMs", "dataMs"].map((field) =>
    smoothed(field)(tables),
  );
  return duration.map((value, row) => Math.max(0, value - (exposed[row] ?? 0) - (data[row] ?? 0)));
}

/** @param {Tables} tables */
const countsTokens = ({ steps }) => steps.tokensPerSecond !== undefined;

/** The column with the speed of a run. @param {Tables} tables */
const rateOf = (tables) => (countsTokens(tables) ? "tokensPerSecond" : "samplesPerSecond");

/** Colours of series named by the job or the dataset, in turn. */
const nameColours = ["blue", "vermilion", "green", "ochre", "purple", "teal", "rose", "sky"];

/**
 * A line for each named figure of the steps, points for each of the evaluations.
 * @param {Tables} tables
 * @param {"loss" | "metric"} kind
 * @returns {readonly Series[]}
 */
function named(tables, kind) {
  const columns = (/** @type {"steps" | "evaluations"} */ table) =>
    Object.keys(tables[table])
      .filter((name) => name.startsWith(`${kind}/`))
      .map((name) => ({ table, name, label: name.slice(kind.length + 1) }));
  const all = [...columns("steps"), ...columns("evaluations")];
  const labels = [...new Set(all.map(({ label }) => label))];
  return all.map(({ table, name, label }) => ({
    label: table === "steps" ? label : `${label}, held out`,
    colour: nameColours[labels.indexOf(label) % nameColours.length] ?? "blue",
    look: table === "steps" ? "line" : "points",
    values: column(table, name),
  }));
}

/** Work over time, both smoothed: a step that is reported late does not make the next one look fast. @param {Tables} tables */
function throughput(tables) {
  const { durationMs = [] } = tables.steps;
  const rates = tables.steps[rateOf(tables)] ?? [];
  const done = smooth(
    tables.steps,
    rates.map((rate, row) => (rate * (durationMs[row] ?? 0)) / 1000),
  );
  const durations = smooth(tables.steps, durationMs);
  return done.map((value, row) => (1000 * value) / (durations[row] ?? Number.NaN));
}

const smoothed =
  (/** @type {string} */ field) =>
  /** @param {Tables} tables */
  ({ steps }) =>
    smooth(steps, steps[field] ?? []);

/**
 * A running mean over a hundredth of the range shown, shorter at the start, where much changes; weighted by steps and not by
 * rows, which may be thinned.
 * @param {Columns} steps
 * @param {readonly number[]} values
 */
function smooth({ step = [] }, values) {
  const first = step[0] ?? 0;
  const longest = ((step.at(-1) ?? 0) - first) / 100;
  let mean = Number.NaN;
  return values.map((value, row) => {
    const now = step[row] ?? 0;
    const span = Math.max(2, Math.min(longest, (now - first) / 10));
    const weight = 1 - Math.exp(-(now - (step[row - 1] ?? 0)) / span);
    if (Number.isFinite(value)) mean = Number.isFinite(mean) ? mean + weight * (value - mean) : value;
    return mean;
  });
}
