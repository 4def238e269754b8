import type { Dataset } from "../data/index.ts";
import { loadJob } from "../job/index.ts";
import type { BatchRefs, BatchRequest, FeederInit, FeederProtocol } from "../protocols/index.ts";
import { defineActor } from "../runtime/index.ts";
import { moveRef, scope } from "../tensor/index.ts";

export default defineActor<FeederProtocol, FeederInit>({
  async start(_context, init) {
    const job = await loadJob(init.jobUrl);
    let dataset: Dataset | undefined;
    const opened = async () => {
      dataset ??= await job.data(init.config, { seed: init.seed });
      return dataset;
    };
    return {
      handlers: {
        async open() {
          const { facts, numValidationSamples } = await opened();
          return { facts, numValidationSamples };
        },
        async next(request) {
          return batchRefs(await opened(), request, request.reader);
        },
      },
    };
  },
});

function batchRefs(dataset: Dataset, request: BatchRequest, owner: string): BatchRefs {
  const { split, position, numSamples } = request;
  return scope(() => {
    const batch =
      split === "train"
        ? dataset.trainBatch(position, numSamples)
        : dataset.validationBatch(position, numSamples);
    return Object.fromEntries(
      Object.entries(batch).map(([name, tensor]) => [name, moveRef(tensor, { owner })]),
    );
  });
}
