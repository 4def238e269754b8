import { IGNORE_INDEX } from "../compute/nn/index.ts";
import { scope } from "../compute/tensor/index.ts";
import { callUser } from "../errors/index.ts";
import { type Job, type LossWeights, StepShares, type weighingOf } from "../job/index.ts";
import {
  attachBatch,
  type Batch,
  BuiltBatches,
  checkNumTokens,
  checkScores,
  type Dataset,
  disposeBatch,
  type Rows,
  type Scores,
  tensorsIn,
} from "../library/data/index.ts";
import { CalledBatches } from "./called-batches.ts";
import { Predictions } from "./predictions.ts";
import type * as protocol from "./protocols/index.ts";

/** Data that is dealt. */
export interface DealtData {
  readonly job: Job;
  readonly dataset: Dataset;
  readonly weigh: ReturnType<typeof weighingOf>;
  /** The error that ends dealing: it turned out to be other data. */
  readonly refusal: unknown;
}

/** Number of first batches whose labels are counted: uneven labels show from the beginning. */
const MOST_LOOKED_AT = 64;

/** Deals batches to one generation of ranks, and collects their predictions. */
export class Dealing {
  readonly #data: DealtData;
  readonly #called: CalledBatches;
  readonly #batches: BuiltBatches;
  readonly #shares: StepShares;
  readonly #predictions = new Predictions();
  #ended: Error | undefined;
  #numLooked = 0;

  constructor(data: DealtData) {
    this.#data = data;
    this.#called = new CalledBatches(data.dataset);
    this.#batches = new BuiltBatches(this.#called);
    this.#shares = new StepShares(async (range) => {
      const batch = await this.#batches.batch(range);
      return scope(() => data.weigh?.(batch) ?? 1);
    });
  }

  /** Ends it: waits for batches and later requests get `reason`, and all that it holds is dropped. */
  end(reason: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#called.end(reason);
    this.#batches.end(reason);
    this.#predictions.drop();
  }

  async deal(order: protocol.BatchOrder): Promise<protocol.DealtBatch> {
    if (this.#data.refusal !== undefined) throw this.#data.refusal;
    const counts = await this.#countsOf(order);
    return { tensors: await this.#batches.take(order, order), ...counts };
  }

  /** Takes the batch of a live model's call, and makes its micro-batches ahead. */
  put(put: protocol.PutBatch): void {
    this.#called.put(put);
    for (const request of put.requests) this.#batches.batch(request).catch(() => {}); // thrown for the ranks that ask
  }

  /** Drops the batch of a call. */
  drop(call: number): Promise<void> {
    return this.#called.drop(call);
  }

  /** Takes predictions of some samples. @throws why it has ended */
  predicted(part: protocol.PredictedRows): void {
    if (this.#ended === undefined) this.#predictions.add(part);
    else disposeBatch(attachBatch(part.rows, "cpu"));
    this.#refuseOnceEnded();
  }

  /** Returns all rows of an evaluation, the caller's to dispose. @throws why it has ended; errors of {@link Predictions.take} */
  rows(of: protocol.EvaluatedSamples): Rows {
    this.#refuseOnceEnded();
    return this.#predictions.take(of);
  }

  /** Scores all rows of an evaluation. @throws as {@link rows} */
  async score(of: protocol.EvaluatedSamples): Promise<Scores> {
    const { split } = of;
    const rows = this.rows(of);
    try {
      const scoring = callUser(`score("${split}", …) of the job's data`, () =>
        this.#data.dataset.score?.(split, rows),
      );
      const scores = (await scoring) ?? {};
      checkScores(scores);
      return scores;
    } finally {
      for (const tensor of Object.values(rows)) tensor.dispose();
    }
  }

  async #countsOf(order: protocol.BatchOrder): Promise<Omit<protocol.DealtBatch, "tensors">> {
    const { job, dataset, weigh } = this.#data;
    const { step, numSamples } = order;
    const isCounted = await this.#called.isCounted(order.split);
    const weighed = isCounted && weigh !== undefined && step !== undefined;
    const share = weighed ? await this.#shares.of(step, order) : undefined;
    const batch = await this.#batches.batch(order);
    if (!isCounted) return { weight: step === undefined ? numSamples : 1 };
    return scope(() => {
      const weight: LossWeights = share ?? (step === undefined ? (weigh?.(batch) ?? numSamples) : 1);
      const numTokens = callUser("countTokens(…) of the job's data", () => dataset.countTokens?.(batch));
      checkNumTokens(numTokens);
      const looked = job.weigh === undefined && step !== undefined && this.#numLooked++ < MOST_LOOKED_AT;
      return { weight, numTokens, ...(looked && { numCounted: labelsThatCount(batch) }) };
    });
  }

  #refuseOnceEnded(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }
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
