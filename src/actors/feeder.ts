import { IGNORE_INDEX } from "../compute/nn/index.ts";
import { moveRef, scope } from "../compute/tensor/index.ts";
import { callUser, TroupeError } from "../errors/index.ts";
import {
  checkGiven,
  exampleRates,
  type Job,
  type JobConfig,
  type LossWeights,
  loadJob,
  modelOf,
  optimizersOf,
  StepShares,
  schedulesOf,
  weighingOf,
} from "../job/index.ts";
import {
  type Batch,
  BuiltBatches,
  checkDataset,
  checkFingerprint,
  checkNumTokens,
  checkScores,
  type Dataset,
  type Fingerprint,
  fileMarks,
  type Rows,
  type Scores,
  tensorsIn,
} from "../library/data/index.ts";
import { ActorDown, defineActor } from "../runtime/index.ts";
import { keptModules } from "../runtime/module-texts.ts";
import { checkBegun } from "./begun-data.ts";
import { CalledBatches } from "./called-batches.ts";
import { Predictions } from "./predictions.ts";
import type * as protocol from "./protocols/index.ts";

export default defineActor<protocol.FeederProtocol, protocol.FeederInit>({
  // Batches that are decoded or fetched are made concurrently.
  concurrent: ["next"],
  async start(context, init) {
    const job = await loadJob(init.jobUrl);
    const predictions = new Predictions();
    let data: Promise<FedData> | undefined;
    const open = (order = init.data) => {
      if (order === undefined) throw new Error("[feeder] expected an order to open its data: there was none");
      return FedData.open(job, order, init.begun);
    };
    const opened = (order?: protocol.DataOrder) => {
      data ??= open(order);
      return data;
    };
    context.watchSiblings((down) => {
      const reason = new ActorDown("next", down);
      opened().then(
        ({ called }) => called.end(reason),
        () => {}, // thrown for those that ask
      );
    });
    return {
      handlers: {
        open: async ({ data: order }) => (await opened(order)).facts(),
        dryRun: async () => (await opened()).dryRun(),
        modules: keptModules,
        fingerprint: async () => ({ fingerprint: await (await opened()).fingerprint, files: fileMarks() }),
        put: async (put) => (await opened()).put(put),
        drop: async ({ call }) => (await opened()).called.drop(call),
        rows: (of) => ({ rows: refsTo(predictions.take(of)) }),
        next: async (order) => (await opened()).deal(order),
        predicted(part) {
          predictions.add(part);
          return {};
        },
        score: async (evaluation) => (await opened()).score(evaluation.split, predictions.take(evaluation)),
      },
    };
  },
});

/** Number of first batches whose labels are counted: uneven labels show from the beginning. */
const MOST_LOOKED_AT = 64;

/** An open dataset, with the counts of its batches. */
class FedData {
  readonly #job: Job;
  readonly #config: JobConfig;
  readonly #dataset: Dataset;
  readonly called: CalledBatches;
  #fingerprint: Fingerprint | Promise<Fingerprint> | undefined;
  readonly #batches: BuiltBatches;
  readonly #weigh: ReturnType<typeof weighingOf>;
  readonly #shares: StepShares;
  /** The error that ends dealing: it turned out to be other data. */
  #refusal: unknown;
  #numLooked = 0;

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
    this.#job = job;
    this.#config = config;
    this.#dataset = dataset;
    this.called = new CalledBatches(dataset);
    this.#batches = new BuiltBatches(this.called);
    this.#weigh = weighingOf(job, config, dataset.facts);
    this.#shares = new StepShares(async (range) => {
      const batch = await this.#batches.batch(range);
      return scope(() => this.#weigh?.(batch) ?? 1);
    });
  }

  /** @throws {TroupeError} `PREDICTIONS` if the job predicts but this dataset cannot score */
  facts(): protocol.OpenedData {
    const { facts, splits, score } = this.#dataset;
    if (this.#job.predict !== undefined && score === undefined) throw unscored(facts.source);
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
    const [job, config, { facts }] = [this.#job, this.#config, this.#dataset];
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
    this.#fingerprint ??= fingerprintOf(this.#dataset);
    return this.#fingerprint;
  }

  async deal(order: protocol.BatchOrder): Promise<protocol.DealtBatch> {
    if (this.#refusal !== undefined) throw this.#refusal;
    const counts = await this.#countsOf(order);
    return { tensors: await this.#batches.take(order, order), ...counts };
  }

  /** Takes the batch of a live model's call, and makes its micro-batches ahead. */
  put(put: protocol.FeederProtocol["put"]["in"]): void {
    this.called.put(put);
    for (const request of put.requests) this.#batches.batch(request).catch(() => {}); // thrown for the ranks that ask
  }

  /** Ownership of `predictions` passes. */
  async score(split: string, predictions: Rows): Promise<Scores> {
    try {
      const scoring = callUser(`score("${split}", …) of the job's data`, () =>
        this.#dataset.score?.(split, predictions),
      );
      const scores = (await scoring) ?? {};
      checkScores(scores);
      return scores;
    } finally {
      for (const tensor of Object.values(predictions)) tensor.dispose();
    }
  }

  async #countsOf(order: protocol.BatchOrder): Promise<Omit<protocol.DealtBatch, "tensors">> {
    const { step, numSamples } = order;
    const isCounted = await this.called.isCounted(order.split);
    const weighed = isCounted && this.#weigh !== undefined && step !== undefined;
    const share = weighed ? await this.#shares.of(step, order) : undefined;
    const batch = await this.#batches.batch(order);
    if (!isCounted) return { weight: step === undefined ? numSamples : 1 };
    return scope(() => {
      const weight: LossWeights = share ?? (step === undefined ? (this.#weigh?.(batch) ?? numSamples) : 1);
      const numTokens = callUser("countTokens(…) of the job's data", () =>
        this.#dataset.countTokens?.(batch),
      );
      checkNumTokens(numTokens);
      const looked =
        this.#job.weigh === undefined && step !== undefined && this.#numLooked++ < MOST_LOOKED_AT;
      return { weight, numTokens, ...(looked && { numCounted: labelsThatCount(batch) }) };
    });
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

/** Refs for the main thread, which never ends before the run. */
function refsTo(rows: Rows): protocol.RowRefs {
  return Object.fromEntries(Object.entries(rows).map(([name, tensor]) => [name, moveRef(tensor)]));
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

/** @returns the number of elements other than -100, in tensors that contain -100; undefined without any */
function labelsThatCount(batch: Batch): number | undefined {
  const counts = [...tensorsIn(batch)].flatMap((tensor) => {
    if (tensor.dtype !== "int64" || tensor.device !== "cpu") return [];
    const numCounted = tensor.ne(IGNORE_INDEX).sum().item();
    return numCounted === tensor.numel ? [] : [numCounted];
  });
  return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0);
}
