import { scopeUnlessAsync, shareRef, Tensor, type TensorRef } from "../../compute/tensor/index.ts";
import { callUser, describeValue, TroupeError } from "../../errors/index.ts";
import { type Batch, disposeBatch, type MappedBatch, mapBatch } from "./batch.ts";
import type { Dataset } from "./dataset.ts";

/** Which samples a batch is made of. Plain data. */
export interface SampleRange {
  readonly split: string;
  /** First sample of the split: of `train` counted over the whole run, all ranks and micro-batches. */
  readonly position: number;
  readonly numSamples: number;
}

/** A batch's tensors on their way, under their names. */
export type BatchRefs = MappedBatch<TensorRef>;

/** Who reads a batch. Plain data. */
export interface BatchReader {
  /** Who answers for the refs until they are attached, see `RefOptions`. */
  readonly owner: string;
  /** How many readers ask for this batch, this one among them. */
  readonly numReaders: number;
}

interface Built {
  readonly batch: Promise<Batch>;
  numTaken: number;
}

/**
 * The batches of a dataset, each built once for all that read it: tensor-parallel neighbours and the stages of a pipeline
 * share the memory of one. What has been asked for and not by all its readers yet is kept.
 */
export class BuiltBatches {
  readonly #dataset: Dataset;
  readonly #built = new Map<string, Built>();

  constructor(dataset: Dataset) {
    this.#dataset = dataset;
  }

  /**
   * A batch as the dataset gave it, built now unless it is there; still this object's, until its last reader has taken it.
   * @throws what the dataset throws; {TroupeError} `DATA_BATCH` for what is no batch
   */
  batch(request: SampleRange): Promise<Batch> {
    return this.#at(request).batch;
  }

  /**
   * One reader's share of a batch: refs that it attaches, to memory that it may read and not write.
   * @throws what {@link batch} throws
   */
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

  #at(request: SampleRange): Built {
    const key = keyOf(request);
    const known = this.#built.get(key);
    if (known !== undefined) return known;
    const built = { batch: this.#build(request), numTaken: 0 };
    this.#built.set(key, built);
    // Whoever asks is told; asking again tries again.
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
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isRecord || value instanceof Tensor) {
    throw batchError(`${place} to give a record of named tensors`, describeValue(value));
  }
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

function mayHoldTensors(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function batchError(expected: string, got: string): TroupeError {
  return new TroupeError(
    "DATA_BATCH",
    { where: "data", expected, got },
    {
      fields: { got },
    },
  );
}
