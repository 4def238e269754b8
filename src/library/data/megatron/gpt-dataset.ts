import { createHash } from "node:crypto";
import { basename } from "node:path";
import { type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { maxFileBytes, readBoundedSync } from "../../../errors/untrusted/index.ts";
import type { Dataset, DatasetFacts } from "../dataset.ts";
import { type GptOrder, gptSamples, gptTokens, isOrderOf } from "./gpt-samples.ts";
import { IndexedDataset } from "./indexed-dataset.ts";
import { type Npy, readNpy, writeNpy } from "./numpy/npy.ts";
import { blendedSamples, type IndexedSamples, partsOf, type SplitName, splitNames } from "./parts.ts";
import { type DocumentSplitRule, type Range, splitRanges } from "./split-ranges.ts";

/** Rows of tokens, int64, [samples, length]. */
export type MegatronGptBatch = { readonly inputIds: Tensor; readonly labels: Tensor };

/** Options of {@link megatronGptDataset}. */
export interface MegatronGptOptions {
  /** A prefix such as `data/books_text_document`, or `weight prefix weight prefix …`, as Megatron's `--data-path`. */
  readonly dataPath: string | readonly (string | number)[];
  /** Weights of training, validation and test, as Megatron's `--split`. */
  readonly split?: string;
  readonly splitRule?: DocumentSplitRule;
  /** Tokens that a sample predicts. */
  readonly length: number;
  readonly seed: number;
  /** The least number of samples of each split. Default: one epoch. */
  readonly numSamples?: Readonly<Partial<Record<SplitName, number>>>;
  /** Upper bound of the token ids, exclusive. */
  readonly vocabSize?: number;
  /** Whether the orders of samples are cached in `.npy` files next to the data, under Megatron's names. Default: true. */
  readonly cache?: boolean;
}

/** Megatron's name of a split in file names. */
const fileNames: Readonly<Record<SplitName, string>> = { train: "train", validation: "valid", test: "test" };

/**
 * Returns Megatron's GPT samples of indexed datasets, by split: rows of `length` + 1 tokens. Empty splits are left out.
 * The sample at an index is the one that Megatron-LM takes there.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`
 */
export function megatronGptSamples(
  options: MegatronGptOptions,
): Readonly<Partial<Record<SplitName, IndexedSamples<Int32Array>>>> {
  const parts = partsOf(options.dataPath).map(({ prefix, weight }) => ({
    data: IndexedDataset.open(prefix),
    weight,
  }));
  const found = splitNames.flatMap((name) => {
    const samples = blendedSamples(parts, options.numSamples?.[name], (data, wanted) =>
      samplesOf(data, name, wanted, options),
    );
    return samples === undefined || samples.length === 0 ? [] : [[name, samples] as const];
  });
  return Object.fromEntries(found);
}

/**
 * Megatron's GPT samples of indexed datasets: `inputIds`, and `labels`, which are one token ahead. The splits are `train`,
 * `validation` and `test`, without empty ones. The sample at a position is the one that Megatron-LM has there.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`, or `DATA_TOO_SHORT` if no split has a sample
 */
export function megatronGptDataset(options: MegatronGptOptions): Dataset<MegatronGptBatch, DatasetFacts> {
  const { length, vocabSize } = options;
  const found = megatronGptSamples(options);
  const splits = new Map<string, IndexedSamples<Int32Array>>(Object.entries(found));
  if (!splits.has("train")) throw tooShort(options);
  const prefixes = partsOf(options.dataPath).map(({ prefix }) => prefix);
  return {
    facts: { source: prefixes.join(", "), ...(vocabSize !== undefined && { vocabSize }) },
    splits: Object.fromEntries([...splits].map(([name, samples]) => [name, { numSamples: samples.length }])),
    batch: (split, position, numSamples) => {
      const samples = splits.get(split) as IndexedSamples<Int32Array>;
      const rows = Array.from({ length: numSamples }, (_, i) => samples.at((position + i) % samples.length));
      const shape = [numSamples, length];
      const columns = (first: number): Tensor => {
        const values = BigInt64Array.from(
          rows.flatMap((row) => Array.from(row.subarray(first, first + length), BigInt)),
        );
        return tensor(values, { dtype: "int64" }).view(shape);
      };
      return { inputIds: columns(0), labels: columns(1) };
    },
    countTokens: ({ labels }) => labels.numel,
    fingerprint: () =>
      Object.fromEntries(
        prefixes.map((prefix) => [
          basename(prefix),
          createHash("sha256")
            .update(readBoundedSync(`${prefix}.idx`, maxFileBytes.numbers))
            .digest("hex"),
        ]),
      ),
  };
}

function samplesOf(
  data: IndexedDataset,
  name: SplitName,
  wanted: number | undefined,
  options: MegatronGptOptions,
): IndexedSamples<Int32Array> | undefined {
  const { length, split = "969, 30, 1", splitRule = "2022" } = options;
  const ranges = splitRanges(split, data.length, splitRule);
  const range = ranges[splitNames.indexOf(name)] as Range;
  let numTokens = 0;
  for (let sequence = range[0]; sequence < range[1]; sequence++)
    numTokens += data.lengths[sequence] as number;
  const numSamples = wanted ?? Math.floor((numTokens - 1) / length);
  if (numTokens < 2 || numSamples < 1) return undefined;
  const samples = orderedSamples(data, name, range, numSamples, options);
  return {
    length: samples.order.length,
    at: (index) => gptTokens(samples, (sequence, offset, count) => data.get(sequence, offset, count), index),
  };
}

/** Reads the order from Megatron's files if they exist and fit; else computes it, and stores it if the folder can be written. */
function orderedSamples(
  data: IndexedDataset,
  name: SplitName,
  range: Range,
  numSamples: number,
  { length, seed, cache = true }: MegatronGptOptions,
): GptOrder {
  const stem = `${data.prefix}_${fileNames[name]}_indexmap_${numSamples}ns_${length}sl_${seed}s`;
  const kept = cache ? readOrders(stem) : undefined;
  if (kept !== undefined && isOrderOf(kept, range, { lengths: data.lengths, length })) return kept;
  const documents = Int32Array.from({ length: range[1] - range[0] }, (_, i) => range[0] + i);
  const made = gptSamples({ lengths: data.lengths, documents, numSamples, length, seed });
  if (cache) keepOrders(stem, made);
  return made;
}

function readOrders(stem: string): GptOrder | undefined {
  try {
    const [documents, bounds, order] = ["doc_idx", "sample_idx", "shuffle_idx"].map(
      (kind) => readNpy(`${stem}_${kind}.npy`).data,
    );
    const isOurs =
      documents instanceof Int32Array && bounds instanceof Int32Array && order instanceof Uint32Array;
    return isOurs ? { documents, bounds, order } : undefined;
  } catch {
    return undefined;
  }
}

function keepOrders(stem: string, { documents, bounds, order }: GptOrder): void {
  const files: Readonly<Record<string, Npy>> = {
    doc_idx: { shape: [documents.length], data: documents },
    sample_idx: { shape: [bounds.length / 2, 2], data: bounds },
    shuffle_idx: { shape: [order.length], data: order },
  };
  try {
    for (const [kind, npy] of Object.entries(files)) writeNpy(`${stem}_${kind}.npy`, npy);
  } catch {
    // It is computed again each time: the data may be in a folder without write access.
  }
}

function tooShort({ dataPath, length }: MegatronGptOptions): TroupeError {
  return new TroupeError("DATA_TOO_SHORT", {
    where: "data",
    expected: `at least ${length + 1} tokens in the training part of ${dataPath}`,
    got: "fewer",
    hint: "give more data, a shorter length, or another split",
    fields: { length },
  });
}
