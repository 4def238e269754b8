import { TroupeError } from "../errors.ts";
import { type DType, ops, Tensor, tensor } from "../tensor/index.ts";
import type { Batch, HostValue } from "./batch.ts";

/** One sample as a record; numbers are stacked into tensors, texts stay with the data. */
export type SampleRecord = { readonly [name: string]: Tensor | number | boolean | string | SampleRecord };

/** The result of {@link stack}. */
export type Stacked<S> = {
  readonly [Name in keyof S]: S[Name] extends Tensor | number | boolean
    ? Tensor
    : S[Name] extends string
      ? readonly string[]
      : Stacked<S[Name]>;
};

/**
 * Collates records name by name: tensors of one shape are stacked along a new dim 0, numbers and booleans become a tensor
 * [samples], texts a list, and records are collated within.
 * @param dtypes - of the tensors made of numbers, by name. Default: float32, and bool for booleans
 * @throws {TroupeError} `DATA_BATCH` for a sample whose names or kinds of values differ from the first one's
 */
export function stack<S extends SampleRecord>(
  dtypes: Readonly<Record<string, DType>> = {},
): (samples: readonly S[]) => Stacked<S> {
  return (samples) => stackRecords(samples, dtypes) as Stacked<S>;
}

function stackRecords(samples: readonly SampleRecord[], dtypes: Readonly<Record<string, DType>>): Batch {
  const names = Object.keys(samples[0] ?? {});
  for (const sample of samples) {
    const own = Object.keys(sample);
    if (own.length !== names.length || own.some((name) => !names.includes(name)))
      throw batchError(`samples of the names ${names.join(", ")}`, `one of ${own.join(", ")}`);
  }
  return Object.fromEntries(
    names.map((name) => [
      name,
      stackValues(
        name,
        samples.map((sample) => sample[name]),
        dtypes,
      ),
    ]),
  );
}

function stackValues(
  name: string,
  values: readonly (SampleRecord[string] | undefined)[],
  dtypes: Readonly<Record<string, DType>>,
): Tensor | Batch | HostValue {
  const kind = kindOf(values[0]);
  const other = values.find((value) => kindOf(value) !== kind);
  if (other !== undefined) throw batchError(`${name} to be a ${kind} in every sample`, `a ${kindOf(other)}`);
  if (kind === "tensor") return ops.stack(values as Tensor[], 0);
  if (kind === "number") return tensor(values as number[], { dtype: dtypes[name] ?? "float32" });
  if (kind === "boolean") return tensor(values.map(Number), { dtype: dtypes[name] ?? "bool" });
  if (kind === "string") return values as string[];
  if (kind === "object") return stackRecords(values as SampleRecord[], dtypes);
  throw batchError(`${name} to be a tensor, a number, a boolean, a text or a record`, `a ${kind}`);
}

function kindOf(value: unknown): string {
  return value instanceof Tensor ? "tensor" : value === null ? "null" : typeof value;
}

function batchError(expected: string, got: string): TroupeError {
  return new TroupeError("DATA_BATCH", { where: "data", expected, got }, { fields: { got } });
}
