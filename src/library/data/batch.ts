import { Tensor } from "../../compute/tensor/index.ts";

/** What stands under a name of a batch: a tensor, a record of more, or plain values that stay where the data is. */
export type BatchValue = Tensor | Batch | HostValue;

/** Plain values beside the tensors: texts, names, paths; they reach no rank. */
export type HostValue =
  | string
  | number
  | boolean
  | null
  | readonly HostValue[]
  | readonly Readonly<Record<string, unknown>>[];

/**
 * One batch as a dataset gives it: by name, with the samples along dim 0 of its tensors. Records may be nested. A name whose value
 * is undefined counts as left out.
 */
export type Batch = { readonly [name: string]: BatchValue | undefined };

/** What of a batch reaches the ranks: its tensors, under their names. */
export type TensorBatch = { readonly [name: string]: Tensor | TensorBatch };

/** {@link TensorBatch}, where the type of a batch is known. */
export type TensorsOf<B> = string extends keyof B
  ? TensorBatch
  : {
      readonly [Name in keyof B as Given<B[Name]> extends HostValue ? never : Name]: Given<
        B[Name]
      > extends Tensor
        ? B[Name]
        : Given<B[Name]> extends Batch
          ? TensorsOf<Given<B[Name]>>
          : never;
    };

/** A value that may be left out, where it is not. */
type Given<Value> = Exclude<Value, undefined>;

/** The same record with something else in place of each tensor; what is no tensor is left out. */
export type MappedBatch<T> = { readonly [name: string]: T | MappedBatch<T> };

/** @returns a batch's tensors, each changed by `change`, under their names; what stays with the data is left out */
export function mapBatch<T>(batch: Batch, change: (tensor: Tensor) => T): MappedBatch<T> {
  const mapped: Record<string, T | MappedBatch<T>> = {};
  for (const [name, value] of Object.entries(batch)) {
    if (value instanceof Tensor) mapped[name] = change(value);
    else if (isRecord(value)) mapped[name] = mapBatch(value, change);
  }
  return mapped;
}

/** @returns every tensor of a batch once, in order, however many names it has */
export function tensorsIn(batch: Batch): Set<Tensor> {
  const tensors = new Set<Tensor>();
  mapBatch(batch, (tensor) => tensors.add(tensor));
  return tensors;
}

/** Releases a batch's tensors. */
export function disposeBatch(batch: Batch): void {
  for (const tensor of tensorsIn(batch)) tensor.dispose();
}

function isRecord(value: unknown): value is Batch {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
