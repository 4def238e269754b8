import { Tensor } from "../../compute/tensor/index.ts";
import { isRecord } from "../../errors/index.ts";

/** A value in a batch: a tensor, a nested record, or plain values that stay where the data is. */
export type BatchValue = Tensor | Batch | HostValue;

/** Plain values next to the tensors: texts, names, paths; they reach no rank. */
export type HostValue =
  | string
  | number
  | boolean
  | null
  | readonly HostValue[]
  | readonly Readonly<Record<string, unknown>>[];

/**
 * One batch of a dataset: values by name, with the samples along dim 0 of its tensors. Records may be nested. A name
 * with the value undefined counts as left out.
 */
export type Batch = { readonly [name: string]: BatchValue | undefined };

/** The tensors of a batch, by name: the part that reaches the ranks. */
export type TensorBatch = { readonly [name: string]: Tensor | TensorBatch };

/** {@link TensorBatch} for a known type of batch. */
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

/** An optional value's type without undefined. */
type Given<Value> = Exclude<Value, undefined>;

/** A batch with a `T` in place of each tensor; other values are left out. */
export type MappedBatch<T> = { readonly [name: string]: T | MappedBatch<T> };

/** Maps a batch's tensors with `change`, under their names; other values are left out. */
export function mapBatch<T>(batch: Batch, change: (tensor: Tensor) => T): MappedBatch<T> {
  const mapped: Record<string, T | MappedBatch<T>> = {};
  for (const [name, value] of Object.entries(batch)) {
    if (value instanceof Tensor) mapped[name] = change(value);
    else if (isRecord(value)) mapped[name] = mapBatch(value as Batch, change);
  }
  return mapped;
}

/** Returns every tensor of a batch once, in order, however many names it has. */
export function tensorsIn(batch: Batch): Set<Tensor> {
  const tensors = new Set<Tensor>();
  mapBatch(batch, (tensor) => tensors.add(tensor));
  return tensors;
}

/** Disposes of a batch's tensors. */
export function disposeBatch(batch: Batch): void {
  for (const tensor of tensorsIn(batch)) tensor.dispose();
}
