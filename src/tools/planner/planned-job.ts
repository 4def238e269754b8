import { loneRank } from "../../actors/engine/rank/index.ts";
import type { TensorPlan } from "../../compute/nn/index.ts";
import { hold, itemBytes, type Tensor } from "../../compute/tensor/index.ts";
import { type Job, type JobConfig, modelOf, weighLosses } from "../../job/index.ts";
import { disposeBatch, type TensorBatch, tensorsIn } from "../../library/data/index.ts";
import type { PlannedModel } from "./cost/model-trace.ts";

/** A job for the planner. */
export interface PlannedJob extends PlannedModel, Disposable {}

/** Opens a job's data and reads a batch of each size, for the loss. @throws {TroupeError} errors of the job's functions */
export async function plannedJob(
  job: Job,
  config: JobConfig,
  sizesOf: (facts: Parameters<Job["model"]>[1]) => Iterable<number> | Promise<Iterable<number>>,
): Promise<PlannedJob> {
  const dataset = await job.data(config, { seed: 0 });
  const { facts } = dataset;
  const batches = new Map<number, TensorBatch>();
  for (const size of new Set(await sizesOf(facts))) {
    const batch = (await dataset.batch("train", 0, size)) as TensorBatch;
    for (const tensor of tensorsIn(batch)) hold(tensor);
    batches.set(size, batch);
  }
  const batchOf = (numSamples: number) => batches.get(numSamples) as TensorBatch;
  const build = () => modelOf(job, config, facts);
  const model = build() as { readonly tensorPlan?: TensorPlan };
  const rank = loneRank();
  const someSamples = Math.min(...batches.keys());
  const tensors = [...tensorsIn(batchOf(someSamples))];
  const ids = tensors.find(({ dtype, shape }) => dtype === "int64" && shape.length === 2);
  return {
    build,
    tensorPlan: job.tensorPlan?.(config) ?? model.tensorPlan,
    loss: (planned, numSamples): Tensor => weighLosses(job.loss(planned, batchOf(numSamples), rank), 1),
    batchBytes: (numSamples) =>
      [...tensorsIn(batchOf(numSamples))].reduce(
        (sum, { numel, dtype }) => sum + numel * itemBytes(dtype),
        0,
      ),
    someSamples,
    // Those in one row of a text model's input.
    tokensPerSample: ids?.shape[1],
    [Symbol.dispose]: () => {
      for (const batch of batches.values()) disposeBatch(batch);
    },
  };
}
