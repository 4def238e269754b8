import { hold, scope } from "../compute/tensor/index.ts";
import * as data from "../library/data/index.ts";
import { type PutBatch, splitOf } from "./protocols/index.ts";

/** The batch of one call, here. */
interface CalledBatch {
  /** Samples from a script; undefined if the dataset makes them. */
  readonly samples: data.Batch | undefined;
  readonly range: data.SampleRange | undefined;
  readonly isCounted: boolean;
}

/** The batches of a live model's calls: a dataset with a further split for each call. */
export class CalledBatches implements Pick<data.Dataset, "batch"> {
  readonly #dataset: data.Dataset;
  /** By split; a request may come before its batch. */
  readonly #calls = new Map<string, PromiseWithResolvers<CalledBatch>>();
  #ended: Error | undefined;

  constructor(dataset: data.Dataset) {
    this.#dataset = dataset;
  }

  put({ call, batch, isCounted }: PutBatch): void {
    const samples = "tensors" in batch ? data.attachBatch(batch.tensors, "cpu") : undefined;
    if (this.#ended !== undefined && samples !== undefined) data.disposeBatch(samples);
    const range = "range" in batch ? batch.range : undefined;
    this.#at(splitOf(call)).resolve({ samples, range, isCounted });
  }

  /** Ends waits for batches with `reason`, and drops those that are here. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const [split, { reject }] of this.#calls) {
      reject(reason);
      void this.#drop(split);
    }
  }

  /** Drops the batch of a call; does nothing once it has ended. */
  async drop(call: number): Promise<void> {
    if (this.#ended === undefined) await this.#drop(splitOf(call));
  }

  /** Whether the job weighs the batches of this split and the dataset counts their tokens. */
  async isCounted(split: string): Promise<boolean> {
    return !isCall(split) || (await this.#at(split).promise).isCounted;
  }

  async batch(split: string, position: number, numSamples: number): Promise<data.Batch> {
    if (!isCall(split)) return this.#dataset.batch(split, position, numSamples);
    const { samples, range } = await this.#at(split).promise;
    if (range !== undefined) return this.#dataset.batch(range.split, range.position + position, numSamples);
    return scope(() =>
      data.mapBatch(samples as data.Batch, (tensor) =>
        hold(() => tensor.narrow(0, position, numSamples).clone()),
      ),
    );
  }

  async #drop(split: string): Promise<void> {
    try {
      const { samples } = await this.#at(split).promise;
      if (samples !== undefined) data.disposeBatch(samples);
    } catch {
      // It never came.
    }
    this.#calls.delete(split);
  }

  #at(split: string): PromiseWithResolvers<CalledBatch> {
    const known = this.#calls.get(split);
    if (known !== undefined) return known;
    const call = Promise.withResolvers<CalledBatch>();
    call.promise.catch(() => {}); // those who wait for it get the error
    this.#calls.set(split, call);
    if (this.#ended !== undefined) call.reject(this.#ended);
    return call;
  }
}

const isCall = (split: string) => split.startsWith(splitOf(0).slice(0, -1));
