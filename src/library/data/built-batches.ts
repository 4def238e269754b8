import {
  attach,
  type Device,
  hold,
  scopeUnlessAsync,
  shareRef,
  Tensor,
  type TensorRef,
} from "../../compute/tensor/index.ts";
import { callUser, describeValue, isPlain, isRecord, TroupeError } from "../../errors/index.ts";
import { type Batch, disposeBatch, type MappedBatch, mapBatch, type TensorBatch } from "./batch.ts";
import type { Dataset } from "./dataset.ts";

/** The samples of a batch. Plain data. */
export interface SampleRange {
  readonly split: string;
  /** First sample, within the split; for `train` counted over the entire run, all ranks and micro-batches. */
  readonly position: number;
  readonly numSamples: number;
}

/** A batch's tensors as refs, by name. */
export type BatchRefs = MappedBatch<TensorRef>;

/** The reader of a batch. Plain data. */
export interface BatchReader {
  /** Owner of the refs until they are attached, see `RefOptions`. */
  readonly owner: string;
  /** Number of readers that ask for this batch, this one included. */
  readonly numReaders: number;
}

/** Attaches a batch's refs; the tensors, now on `device`, are the caller's. */
export function attachBatch(refs: BatchRefs, device: Device): TensorBatch {
  return Object.fromEntries(
    Object.entries(refs).map(([name, ref]) => [
      name,
      isRef(ref) ? hold(() => attach(ref).onto(device)) : attachBatch(ref, device),
    ]),
  );
}

function isRef(value: TensorRef | BatchRefs): value is TensorRef {
  return (value as Partial<TensorRef>).kind === "tensor-ref";
}

interface Built {
  readonly batch: Promise<Batch>;
  numTaken: number;
}

/**
 * Batches of a dataset, each built once for all its readers: tensor-parallel neighbours and pipeline stages share its
 * memory. A batch is kept until all its readers have taken it.
 */
export class BuiltBatches {
  readonly #dataset: Pick<Dataset, "batch">;
  readonly #built = new Map<string, Built>();
  #ended: Error | undefined;

  constructor(dataset: Pick<Dataset, "batch">) {
    this.#dataset = dataset;
  }

  /**
   * Returns a batch, built now unless it exists; this object owns it until the last reader has taken it.
   * @throws errors of the dataset; {TroupeError} `DATA_BATCH` for an invalid batch; the reason of {@link end}, once it has ended
   */
  async batch(request: SampleRange): Promise<Batch> {
    return await this.#at(request).batch;
  }

  /** Returns refs to a batch for one reader, to attach and to read only. @throws errors of {@link batch} */
  async take(request: SampleRange, { owner, numReaders }: BatchReader): Promise<BatchRefs> {
    const built = this.#at(request);
    built.numTaken += 1;
    const isLast = built.numTaken >= numReaders;
    if (isLast) this.#built.delete(keyOf(request));
    const batch = await built.batch;
    const refs = mapBatch(batch, (tensor) => shareRef(tensor, { owner }));
    if (isLast) disposeBatch(batch);
    return refs;
  }

  /** Drops all batches; requests from here on get `reason`. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const { batch } of this.#built.values()) batch.then(disposeBatch, () => {}); // thrown for those that asked
    this.#built.clear();
  }

  #at(request: SampleRange): Built {
    if (this.#ended !== undefined) throw this.#ended;
    const key = keyOf(request);
    const known = this.#built.get(key);
    if (known !== undefined) return known;
    const built = { batch: this.#build(request), numTaken: 0 };
    this.#built.set(key, built);
    // Every reader gets the error; asking again tries again.
    built.batch.catch(() => this.#built.delete(key));
    return built;
  }

  async #build({ split, position, numSamples }: SampleRange): Promise<Batch> {
    const place = `batch("${split}", ${position}, ${numSamples})`;
    const batch: unknown = await callUser(`${place} of the job's data`, () =>
      scopeUnlessAsync(() => this.#dataset.batch(split, position, numSamples)),
    );
    checkBatch(batch, place);
    return batch;
  }
}

function keyOf({ split, position, numSamples }: SampleRange): string {
  return `${split} ${position} ${numSamples}`;
}

function checkBatch(value: unknown, place: string): asserts value is Batch {
  if (!isRecord(value) || value instanceof Tensor)
    throw batchError(`${place} to return a record of named tensors`, describeValue(value));
  for (const [name, item] of Object.entries(value)) {
    if (item instanceof Tensor || !mayHoldTensors(item)) continue;
    if (Array.isArray(item)) {
      if (item.some((each) => each instanceof Tensor))
        throw batchError(
          `${name} in ${place} to be a tensor, or plain values`,
          "an array of tensors (give each a name)",
        );
    } else if (isPlain(item)) checkBatch(item, place);
    else
      throw batchError(`${name} in ${place} to be a tensor, a record or plain values`, describeValue(item));
  }
}

const mayHoldTensors = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The error for a batch that a dataset must not return. */
export function batchError(expected: string, got: string): TroupeError {
  return new TroupeError("DATA_BATCH", { where: "data", expected, got, fields: { got } });
}
