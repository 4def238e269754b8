/** The tables of Rapidformer's document, measured here, with what the planner foretells, and what strategies learn. */
export { type Dimension, dimensions, sizes } from "./dimensions.ts";
export { htmlReport, picturesOf } from "./html.ts";
export { KeptResults } from "./kept-results.ts";
export { type BenchResult, markdownReport, type Table, tablesOf } from "./report.ts";
export { type BenchOptions, runBench } from "./run-bench.ts";
