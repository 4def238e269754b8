/** @import { Columns } from "./tables.js" */
import { bytes, count, loss, milliseconds, percent, significant } from "./figures.js";

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

/** The charts, in the order in which they stand. @type {readonly ChartSpec[]} */
export const chartSpecs = [
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
 * A mean that follows within a hundredth of what is shown, faster at the beginning, where much changes; by steps and not
 * by rows, which may be thinned.
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
