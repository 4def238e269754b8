import type { Module } from "../compute/nn/index.ts";
import type { Rows } from "../library/data/index.ts";
import type { Losses } from "./losses.ts";
import type { Rank } from "./rank-context.ts";

/**
 * A function of a job's model that scripts call by name: a pure function of the model, a batch and plain arguments. It returns
 * rows, one for each sample, or the batch's loss, a mean as the job's own is.
 */
export type Program<M extends Module = never> = {
  // A method's parameters are compared both ways: a program of one model's class is a program of a job that does not say its class.
  program(model: M, batch: never, args: never, rank: Rank): Losses | Rows;
}["program"];

/** A job's programs by name. */
export type Programs<M extends Module = never> = Readonly<Record<string, Program<M>>>;

/** The name of the program that every job has: its loss. */
export const LOSS = "loss";
