import type { Device } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { LossWeights } from "../../../job/index.ts";
import {
  attachBatch,
  type BatchReader,
  batchSizeAt,
  disposeBatch,
  microBatchesAt,
  type SamplerState,
  samplesBefore,
  type TensorBatch,
} from "../../../library/data/index.ts";
import { type ActorContext, type ActorRef, AskTimeout, type Pending } from "../../../runtime/index.ts";
import type { BatchRequest, DealtBatch, FeederProtocol, OfGeneration } from "../../protocols/index.ts";

/** Dealing of a run's samples. */
export interface BatchDealing {
  readonly sampler: SamplerState;
  /** Micro-batches of one replica in a step with a full batch. */
  readonly accumulation: number;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
  readonly replica: number;
}

/** A batch with its counts. */
export interface WeighedBatch {
  /** The caller's to dispose. */
  readonly batch: TensorBatch;
  /** As of `DealtBatch`. */
  readonly weight: LossWeights;
  readonly numSamples: number;
  readonly numTokens: number | undefined;
  readonly numCounted: number | undefined;
}

/** The reader of a {@link BatchSource}'s batches: `owner` is named by `recipientName`. */
interface BatchSourceOptions extends BatchReader, OfGeneration {
  readonly deadlineMs: number;
  /** Destination of the tensors. */
  readonly device: Device;
}

/** Number of batches requested ahead. */
const BATCHES_AHEAD = 2;

/** A rank's access to its data: requests batches from the feeder ahead, and waits by blocking. */
export class BatchSource {
  readonly #context: Pick<ActorContext<unknown>, "request" | "wait">;
  readonly #feeder: ActorRef<FeederProtocol>;
  readonly #dealing: BatchDealing;
  readonly #options: BatchSourceOptions;
  /** Batches requested ahead, oldest first. */
  readonly #ahead: { readonly turn: Turn; readonly batch: AskedBatch }[] = [];
  /** Named by {@link expect} and not fetched yet, in order. */
  #expected: readonly BatchRequest[] = [];
  /** Expected batches that are requested. */
  readonly #asked = new Map<string, AskedBatch>();
  /** Time the computation stood still for data since this was last set to 0, in milliseconds. */
  waitedMs = 0;

  constructor(
    context: Pick<ActorContext<unknown>, "request" | "wait">,
    feeder: ActorRef<FeederProtocol>,
    dealing: BatchDealing,
    options: BatchSourceOptions,
  ) {
    this.#context = context;
    this.#feeder = feeder;
    this.#dealing = dealing;
    this.#options = options;
  }

  /** The batch of one micro-batch of a step; requests the ones after it first. */
  next(step: number, microBatch: number): WeighedBatch {
    const first = this.#ahead[0]?.turn;
    if (first?.step !== step || first.microBatch !== microBatch) this.#dropAhead();
    while (this.#ahead.length <= BATCHES_AHEAD) {
      const last = this.#ahead.at(-1)?.turn;
      const turn = last === undefined ? { step, microBatch } : this.#after(last);
      this.#ahead.push({ turn, batch: this.#ask(this.#trainRequest(turn)) });
    }
    return this.#attach(this.#ahead.shift()?.batch as AskedBatch);
  }

  /** The batch of a request. Those that {@link expect} named are requested ahead. */
  fetch(request: BatchRequest): WeighedBatch {
    const asked = this.#asked.get(keyOf(request)) ?? this.#ask(request);
    this.#asked.delete(keyOf(request));
    this.#expected = this.#expected.filter((each) => keyOf(each) !== keyOf(request));
    this.#askExpected();
    return this.#attach(asked);
  }

  /** Names the batches of a live model's calls that are fetched next, in order; those that were named before stay. */
  expect(requests: readonly BatchRequest[]): void {
    const known = new Set(this.#expected.map(keyOf));
    this.#expected = [...this.#expected, ...requests.filter((request) => !known.has(keyOf(request)))];
    this.#askExpected();
  }

  /** Passes over batches of a call that is not made. */
  passOver(requests: readonly BatchRequest[]): void {
    for (const request of requests) disposeBatch(this.fetch(request).batch);
  }

  #askExpected(): void {
    for (const request of this.#expected.slice(0, BATCHES_AHEAD))
      if (!this.#asked.has(keyOf(request))) this.#asked.set(keyOf(request), this.#ask(request));
  }

  #after({ step, microBatch }: Turn): Turn {
    const { sampler, accumulation } = this.#dealing;
    const isLast = microBatch + 1 === microBatchesAt(sampler, accumulation, step);
    return isLast ? { step: step + 1, microBatch: 0 } : { step, microBatch: microBatch + 1 };
  }

  #trainRequest({ step, microBatch }: Turn): BatchRequest {
    const { sampler, accumulation, microBatchSize, replica } = this.#dealing;
    const first = samplesBefore(sampler, step);
    const place = replica * microBatchesAt(sampler, accumulation, step) + microBatch;
    return {
      split: "train",
      position: first + place * microBatchSize,
      numSamples: microBatchSize,
      step: { position: first, numBatches: batchSizeAt(sampler, step) / microBatchSize },
    };
  }

  #ask(request: BatchRequest): AskedBatch {
    const { owner, numReaders, generation, deadlineMs } = this.#options;
    const order = { ...request, owner, numReaders, generation };
    const dealt = this.#context.request(this.#feeder, "next", order, { deadlineMs });
    return { dealt, request };
  }

  #attach({ dealt, request }: AskedBatch): WeighedBatch {
    const { numSamples } = request;
    const begin = performance.now();
    const { tensors, weight, numTokens, numCounted } = this.#wait(dealt, request);
    this.waitedMs += performance.now() - begin;
    return { batch: attachBatch(tensors, this.#options.device), weight, numSamples, numTokens, numCounted };
  }

  #wait(dealt: Pending<DealtBatch>, { split, position, numSamples }: BatchRequest): DealtBatch {
    try {
      return this.#context.wait(dealt);
    } catch (error) {
      if (!(error instanceof AskTimeout)) throw error;
      throw new TroupeError("DATA_PENDING", {
        where: "data",
        expected: `batch("${split}", ${position}, ${numSamples}) of the job's data to give a batch within ${this.#options.deadlineMs / 1000} s`,
        got: "a promise that is not settled, or a loop without end",
        hint: "more time: --deadline",
        fields: { split, position, numSamples },
        cause: error,
      });
    }
  }

  /** The run jumped, for instance back to a checkpoint: drops the batches requested ahead. */
  #dropAhead(): void {
    for (const { batch } of this.#ahead.splice(0)) disposeBatch(this.#attach(batch).batch);
  }
}

const keyOf = ({ split, position }: BatchRequest) => `${split} ${position}`;

interface Turn {
  readonly step: number;
  readonly microBatch: number;
}

interface AskedBatch {
  readonly dealt: Pending<DealtBatch>;
  readonly request: BatchRequest;
}
