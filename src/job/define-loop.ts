import type { Module } from "../compute/nn/index.ts";
import { TroupeError } from "../errors/index.ts";
import type { Batch, DatasetFacts } from "../library/data/index.ts";
import type { Job, JobDefinition } from "./job.ts";
import type { JobConfig } from "./job-config.ts";
import type { Loop } from "./rank-context.ts";

/** A job with its own training loop. */
export interface LoopDefinition<
  Config extends JobConfig,
  B extends Batch,
  M extends Module,
  F extends DatasetFacts,
> extends Omit<JobDefinition<Config, B, M, F>, "loss"> {
  /** The mean loss of a batch, for evaluation on held-out data and for finding pipeline stages. */
  loss?: JobDefinition<Config, B, M, F>["loss"];
}

/**
 * Declares a job with its own training loop: the default export of the job's module.
 *
 * ```ts
 * export default defineLoop({ config, training, data, model, optimizer }, (rank) => {
 *   for (const batch of rank.batches()) {
 *     const loss = rank.forward(() => crossEntropy(rank.model.forward(batch.x), batch.y));
 *     rank.backward(loss);
 *     rank.step();
 *   }
 * });
 * ```
 */
export function defineLoop<
  Config extends JobConfig,
  B extends Batch,
  M extends Module,
  F extends DatasetFacts = DatasetFacts,
>(definition: LoopDefinition<Config, B, M, F>, loop: Loop<Config, B, M, F>): Job<Config> {
  checkLoop(loop);
  return { loss: refuseLoss, ...definition, loop } as unknown as Job<Config>;
}

/** Refuses a loop that would not run to its end when called. @throws {TroupeError} `JOB_INVALID` */
function checkLoop(loop: unknown): void {
  const kind = typeof loop === "function" ? loop.constructor.name : typeof loop;
  if (kind !== "Function") throw notSynchronous(KINDS[kind] ?? `a ${kind}`);
}

const KINDS: Readonly<Record<string, string>> = {
  AsyncFunction: "an async function",
  GeneratorFunction: "a generator function",
  AsyncGeneratorFunction: "an async generator function",
};

/** Refuses a loop that returned before its end. @throws {TroupeError} `JOB_INVALID` */
export function checkReturned(returned: unknown): void {
  if (typeof returned !== "object" || returned === null || !("then" in returned)) return;
  // It may go on, and reject: the loop is refused already.
  Promise.resolve(returned).catch(() => {});
  throw notSynchronous("a promise");
}

function notSynchronous(got: string): TroupeError {
  return new TroupeError("JOB_INVALID", {
    where: "loop",
    expected: "a plain function (rank) => { … } as the loop",
    got,
    hint: "leave out async and await: calls of rank block until they are done",
  });
}

/** Refuses a loop declared without a loss, where one is needed. @throws {TroupeError} `JOB_INVALID` */
export function requireLoss({ loss }: Job): void {
  if (loss === refuseLoss) refuseLoss();
}

/** The loss of a loop declared without one. @throws {TroupeError} `JOB_INVALID` */
export function refuseLoss(): never {
  throw new TroupeError("JOB_INVALID", {
    where: "loop",
    expected: "a loss for held-out data and pipelines",
    got: "none",
    hint: "give defineLoop a loss(model, batch)",
  });
}
