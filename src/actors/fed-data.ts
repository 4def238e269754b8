import { callUser, TroupeError } from "../errors/index.ts";
import {
  checkGiven,
  exampleRates,
  type Job,
  type JobConfig,
  modelOf,
  optimizersOf,
  schedulesOf,
  weighingOf,
} from "../job/index.ts";
import {
  checkDataset,
  checkFingerprint,
  type Dataset,
  type Fingerprint,
  fileMarks,
} from "../library/data/index.ts";
import { checkBegun } from "./begun-data.ts";
import type { DealtData } from "./dealing.ts";
import type * as protocol from "./protocols/index.ts";

/** A job's open dataset. */
export class FedData implements DealtData {
  readonly job: Job;
  readonly dataset: Dataset;
  readonly weigh: DealtData["weigh"];
  readonly #config: JobConfig;
  #fingerprint: Fingerprint | Promise<Fingerprint> | undefined;
  #refusal: unknown;

  /** @throws {TroupeError} `DATA_CHANGED` if it is not the data that the run began with */
  static async open(
    job: Job,
    { config, seed }: protocol.DataOrder,
    begun: protocol.BegunData | undefined,
  ): Promise<FedData> {
    const dataset: unknown = await job.data(config, { seed });
    checkGiven(job.data, "data", () => checkDataset(dataset));
    const data = new FedData(job, config, dataset as Dataset);
    if (begun === undefined) return data;
    const { later } = await checkBegun(dataset as Dataset, () => data.fingerprint, begun);
    later?.catch((error: unknown) => {
      data.#refusal = error;
    });
    return data;
  }

  private constructor(job: Job, config: JobConfig, dataset: Dataset) {
    this.job = job;
    this.#config = config;
    this.dataset = dataset;
    this.weigh = weighingOf(job, config, dataset.facts);
  }

  /** @throws {TroupeError} `PREDICTIONS` if the job predicts but this dataset cannot score */
  facts(): protocol.OpenedData {
    const { facts, splits, score } = this.dataset;
    if (this.job.predict !== undefined && score === undefined) throw unscored(facts.source);
    const { fingerprint } = this;
    return {
      facts,
      splits,
      fingerprint: fingerprint instanceof Promise ? "later" : fingerprint,
      files: fileMarks(),
    };
  }

  /** Makes the model, its optimizers and their schedules, and drops them. */
  dryRun(): Record<string, never> {
    const [job, config, { facts }] = [this.job, this.#config, this.dataset];
    try {
      const optimizers = optimizersOf(job, modelOf(job, config, facts), config);
      for (const schedule of schedulesOf(job, optimizers, config, facts)) exampleRates(schedule);
      job.tensorPlan?.(config);
    } catch {
      // The main thread calls them again and reports the error.
    }
    return {};
  }

  /** The dataset's own fingerprint, else the sizes of its splits. */
  get fingerprint(): Fingerprint | Promise<Fingerprint> {
    this.#fingerprint ??= fingerprintOf(this.dataset);
    return this.#fingerprint;
  }

  get refusal(): unknown {
    return this.#refusal;
  }
}

function fingerprintOf(dataset: Dataset): Fingerprint | Promise<Fingerprint> {
  // Its promise may take hours; a new run does not wait for it.
  const { own } = callUser("fingerprint() of the job's data", () => ({ own: dataset.fingerprint?.() }));
  if (own === undefined) {
    const sizes = Object.entries(dataset.splits).map(
      ([name, { numSamples }]) => [`${name}Samples`, String(numSamples)] as const,
    );
    return Object.fromEntries(sizes);
  }
  if (typeof (own as { then?: unknown } | null)?.then !== "function") {
    checkFingerprint(own);
    return own;
  }
  const later = Promise.resolve(own).then((fingerprint) => {
    checkFingerprint(fingerprint);
    return fingerprint;
  });
  // Rejection is delivered to the caller that awaits it.
  later.catch(() => {});
  return later;
}

function unscored(source: string): TroupeError {
  return new TroupeError("PREDICTIONS", {
    where: "predict",
    expected: "a dataset that scores what the job predicts",
    got: `${source} without score(…)`,
    hint: "give the dataset one, or leave predict out",
    fields: { source },
  });
}
