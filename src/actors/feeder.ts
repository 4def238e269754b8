import type { Batch, Dataset } from "../data/index.ts";
import { TroupeError } from "../errors.ts";
import {
  checkWeights,
  type Job,
  type JobConfig,
  type LossWeights,
  loadJob,
  StepShares,
  weighingOf,
} from "../job/index.ts";
import type { BatchRequest, DealtBatch, FeederInit, FeederProtocol } from "../protocols/index.ts";
import { defineActor } from "../runtime/index.ts";
import { moveRef, scope } from "../tensor/index.ts";
import { Predictions } from "./predictions.ts";

export default defineActor<FeederProtocol, FeederInit>({
  async start(_context, init) {
    const job = await loadJob(init.jobUrl);
    const predictions = new Predictions();
    let data: FedData | undefined;
    const opened = async () => {
      data ??= new FedData(job, init.config, await job.data(init.config, { seed: init.seed }));
      return data;
    };
    return {
      handlers: {
        async open() {
          const { facts, numValidationSamples, score } = (await opened()).dataset;
          if (job.predict !== undefined && score === undefined) throw unscored(facts.source);
          return { facts, numValidationSamples };
        },
        async next({ reader, ...request }) {
          return (await opened()).deal(request, reader);
        },
        predicted(part) {
          predictions.add(part);
          return {};
        },
        async score(evaluation) {
          const { dataset } = await opened();
          const rows = predictions.take(evaluation);
          try {
            return (await dataset.score?.(evaluation.split, rows)) ?? {};
          } finally {
            for (const tensor of Object.values(rows)) tensor.dispose();
          }
        },
      },
    };
  },
});

/** A dataset that is open, and what its batches count. */
class FedData {
  readonly dataset: Dataset;
  readonly #weigh: ((batch: Batch) => LossWeights) | undefined;
  readonly #shares: StepShares;

  constructor(job: Job, config: JobConfig, dataset: Dataset) {
    this.dataset = dataset;
    this.#weigh = weighingOf(job, config);
    this.#shares = new StepShares(async (position, numSamples) =>
      this.#weightOf({ split: "train", position, numSamples }),
    );
  }

  async deal(request: BatchRequest, owner: string): Promise<DealtBatch> {
    const { step, numSamples } = request;
    const weighed = this.#weigh !== undefined && step !== undefined;
    const share = weighed ? await this.#shares.of(step, request) : undefined;
    return scope(() => {
      const batch = batchOf(this.dataset, request);
      const weight = share ?? (step === undefined ? (this.#weigh?.(batch) ?? numSamples) : 1);
      checkWeights(weight);
      const numTokens = this.dataset.countTokens?.(batch);
      const tensors = Object.entries(batch).map(([name, tensor]) => [name, moveRef(tensor, { owner })]);
      return { tensors: Object.fromEntries(tensors), weight, numTokens };
    });
  }

  #weightOf(request: BatchRequest): LossWeights {
    return scope(() => this.#weigh?.(batchOf(this.dataset, request)) ?? 1);
  }
}

function unscored(source: string): TroupeError {
  return new TroupeError(
    "PREDICTIONS",
    `[predict] expected a dataset that scores what the job predicts: got ${source} without score(…) (give the dataset one, or leave predict out)`,
    { fields: { source } },
  );
}

function batchOf(dataset: Dataset, { split, position, numSamples }: BatchRequest): Batch {
  return split === "train"
    ? dataset.trainBatch(position, numSamples)
    : dataset.validationBatch(position, numSamples);
}
