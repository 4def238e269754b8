import { joinNumbers, type RecordedTensor, stackedShape } from "../../compute/nn/index.ts";
import { joinStatistics, type Statistics, standardDeviation } from "../../compute/tensor/index.ts";
import type { InspectedPart } from "../protocols/index.ts";
import { partsByName } from "./inspected-part.ts";

/** Statistics of a tensor over all ranks that hold some of it. */
export interface TensorSummary {
  readonly name: string;
  readonly shape: readonly number[];
  readonly std: number;
  readonly mean: number;
  readonly max: number;
  readonly min: number;
  /** Statistics of the gradient of the step's loss with respect to it; 0 without one. */
  readonly gradStd: number;
  readonly gradMean: number;
  /** The numbers of a recorded tensor, row-major, as float32, if requested; those of scalars one after the other. */
  readonly values?: Float32Array;
}

/** A summary before the requests for numbers are matched. */
export interface RecordedSummary extends Omit<TensorSummary, "values"> {
  readonly values?: Float32Array | "too many";
}

/** Joins the shards' parts of each parameter. @param order - names of all parameters */
export function summarizeParameters(
  parts: readonly InspectedPart[],
  order: readonly string[],
): TensorSummary[] {
  return partsByName(parts, order).map(([name, some]) => summaryOf(name, some[0].shape, some));
}

/** Joins the ranks' records, along the model: the ranks' parts lie one after the other along dim 0. */
export function summarizeTensors(recorded: readonly RecordedTensor[]): RecordedSummary[] {
  const inOrder = recorded.toSorted((a, b) => a.place - b.place);
  return [...Map.groupBy(inOrder, ({ name }) => name)].map(([name, parts]) => {
    const summary = summaryOf(name, stackedShape(parts.map(({ shape }) => shape)), parts);
    const values = joinNumbers(parts.map(({ numbers }) => numbers));
    return values === undefined ? summary : { ...summary, values };
  });
}

function summaryOf(
  name: string,
  shape: readonly number[],
  parts: readonly { readonly values: Statistics; readonly gradient: Statistics | undefined }[],
): TensorSummary {
  const values = joinStatistics(parts.map((part) => part.values));
  const gradient = joinStatistics(parts.flatMap((part) => part.gradient ?? []));
  return {
    name,
    shape,
    std: standardDeviation(values),
    mean: values.mean,
    max: values.max,
    min: values.min,
    gradStd: gradient.count === 0 ? 0 : standardDeviation(gradient),
    gradMean: gradient.mean,
  };
}

const NUMBER_WIDTH = 10;
const SHAPE_WIDTH = 20;
const NUMBERS = ["max", "min", "std", "mean", "gradStd", "gradMean"] as const;
const HEADERS = ["max", "min", "std", "mean", "grad_std", "grad_mean"];

/** @returns a table of summaries with the columns and widths of BMTrain's `format_summary` */
export function formatSummary(summaries: readonly TensorSummary[]): string {
  const nameWidth = Math.max("name".length, ...summaries.map(({ name }) => name.length)) + 4;
  const line = (name: string, shape: string, numbers: readonly string[]) =>
    [cell(name, nameWidth), cell(shape, SHAPE_WIDTH), ...numbers.map((text) => cell(text, NUMBER_WIDTH))]
      .join("")
      .trimEnd();
  const rows = summaries.map((summary) =>
    line(
      summary.name,
      `(${summary.shape.join(", ")}${summary.shape.length === 1 ? "," : ""})`,
      NUMBERS.map((kind) => summary[kind].toFixed(4)),
    ),
  );
  return [line("name", "shape", HEADERS), ...rows].join("\n");
}

/** A text cut to its width, with a space before it. */
const cell = (text: string, width: number): string => ` ${text}`.slice(0, width).padEnd(width);
