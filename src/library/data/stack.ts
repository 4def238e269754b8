import { type DType, ops, Tensor, tensor } from "../../compute/tensor/index.ts";
import { describeValue } from "../../errors/index.ts";
import { ownValue } from "../../errors/untrusted/index.ts";
import type { Batch, HostValue } from "./batch.ts";
import { batchError } from "./built-batches.ts";
import type { BatchPlace } from "./sample-dataset.ts";

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
 * Collates records name by name: tensors of one shape are stacked along a new dim 0, numbers and booleans become a
 * tensor [samples], texts a list, and nested records are collated likewise.
 * @param dtypes - of tensors made of numbers, by name. Default: float32, and bool for booleans
 * @throws {TroupeError} `DATA_BATCH` for a sample whose names, kinds of values or shapes differ from the first one's
 */
export function stack<S extends SampleRecord>(
  dtypes: Readonly<Record<string, DType>> = {},
): (samples: readonly S[], place?: BatchPlace) => Stacked<S> {
  return (samples, place) => stackRecords(samples, { dtypes, place }) as Stacked<S>;
}

interface Stacking {
  readonly dtypes: Readonly<Record<string, DType>>;
  readonly place: BatchPlace | undefined;
}

function stackRecords(samples: readonly SampleRecord[], stacking: Stacking): Batch {
  const [first = {}] = samples;
  requireAlike(samples, namesOf, "the same names", stacking);
  return Object.fromEntries(
    Object.keys(first).map((name) => {
      const values = samples.map((sample) => sample[name]);
      return [name, stackValues(name, values, stacking)];
    }),
  );
}

function stackValues(
  name: string,
  values: readonly unknown[],
  stacking: Stacking,
): Tensor | Batch | HostValue {
  const kind = kindOf(values[0]);
  requireAlike(values, kindOf, `one kind of ${name}`, stacking);
  const dtype = ownValue(stacking.dtypes, name);
  if (kind === "a tensor") {
    const describe = (value: unknown) => describeTensor(value as Tensor);
    requireAlike(values, describe, `${name} of one dtype and shape`, stacking);
    return ops.stack(values as Tensor[], 0);
  }
  if (kind === "a number") return tensor(values as number[], { dtype: dtype ?? "float32" });
  if (kind === "a boolean") return tensor(values.map(Number), { dtype: dtype ?? "bool" });
  if (kind === "a text") return values as string[];
  if (kind === "a record") return stackRecords(values as SampleRecord[], stacking);
  const got = kind === "a promise" ? "a promise (await it: at(index) may be async)" : kind;
  throw batchError(`${name} to be a tensor, a number, a boolean, a text or a record`, got);
}

/**
 * Checks that all samples are alike.
 * @throws {TroupeError} `DATA_BATCH`, with the first sample and the first that differs from it: either may be the wrong one
 */
function requireAlike<V>(
  values: readonly V[],
  describe: (value: V) => string,
  expected: string,
  { place }: Stacking,
): void {
  const first = describe(values[0] as V);
  const index = values.findIndex((value) => describe(value) !== first);
  if (index < 0) return;
  const [one, other] = [0, index].map((at) => `sample ${place?.indices[at] ?? at}`);
  const all = place === undefined ? "the batch" : `split ${place.split}`;
  const got = `${first} in ${one} and ${describe(values[index] as V)} in ${other} of ${all}`;
  throw batchError(`${expected} in every sample`, got);
}

const namesOf = (sample: SampleRecord): string => Object.keys(sample).toSorted().join(", ");

const describeTensor = ({ dtype, shape }: Tensor): string => `${dtype}[${shape.join(",")}]`;

function kindOf(value: unknown): string {
  if (value instanceof Tensor) return "a tensor";
  if (typeof value === "number" || typeof value === "boolean") return `a ${typeof value}`;
  if (typeof value === "string") return "a text";
  const kind = describeValue(value);
  return kind === "an object" ? "a record" : kind;
}
