import type { Module } from "../compute/nn/index.ts";
import type { Rows, TensorBatch } from "../library/data/index.ts";
import type { Job } from "./job.ts";
import type { Losses } from "./losses.ts";
import type { Rank } from "./rank-context.ts";

/**
 * A function of a job's model that scripts call by name: a pure function of the model, a batch and plain arguments. It returns
 * rows, one for each sample, or the batch's loss, a mean as the job's own is.
 */
export type Program<M extends Module = never> = (
  model: M,
  batch: never,
  args: never,
  rank: Rank,
) => Losses | Rows;

/** A job's programs by name. */
export type Programs<M extends Module = never> = Readonly<Record<string, Program<M>>>;

/** The name of the program that every job has: its loss. */
export const LOSS = "loss";

/** Returns the names of a job's programs. */
export function programNames({ programs = {} }: Job): readonly string[] {
  return [LOSS, ...Object.keys(programs)];
}

/** Runs a program of a job; the caller has checked its name. */
export function runProgram(
  job: Job,
  name: string,
  model: Module,
  batch: TensorBatch,
  args: unknown,
  rank: Rank,
): Losses | Rows {
  if (name === LOSS) return job.loss(model, batch, rank);
  const program = (job.programs as Programs | undefined)?.[name] as Program;
  return program(model as never, batch as never, args as never, rank);
}
