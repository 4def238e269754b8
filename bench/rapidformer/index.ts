/** Measures the tables of Rapidformer's document, next to the planner's predictions, and what strategies learn. */
export { dimensions, sizes } from "./dimensions.ts";
export { htmlReport, picturesOf } from "./html.ts";
export { KeptResults } from "./kept-results.ts";
export { type BenchResult, markdownReport } from "./report.ts";
export { type BenchOptions, runBench } from "./run-bench.ts";
