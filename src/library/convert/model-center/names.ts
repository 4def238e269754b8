import type { ModelCenterModel, ModelCenterTensor } from "../../models/index.ts";
import { convertError, unsharedNames } from "../convert-error.ts";
import { cut, joined, type LazyTensor, transposed } from "../lazy-tensor.ts";

type NamedTensors = ReadonlyMap<string, LazyTensor>;

/** Whether these names are of a ModelCenter model. */
export function looksLikeModelCenter(names: Iterable<string>): boolean {
  return [...names].some((name) => name.endsWith(".self_att.self_attention.project_q.weight"));
}

/**
 * Renames a ModelCenter model's tensors to Hugging Face's names.
 * @throws {TroupeError} `CONVERT` for names that are missing or not the model's; while reading, for copies that differ
 */
export function fromModelCenterNames(
  tensors: NamedTensors,
  model: ModelCenterModel,
): Map<string, LazyTensor> {
  const isExpected = new Set(model.tensors.map(({ there }) => there));
  const unknown = [...tensors.keys()].filter(
    (name) => !isExpected.has(name) && !model.ignored.some((pattern) => pattern.test(name)),
  );
  const wanted = model.tensors.filter(({ copy }) => copy !== "unread");
  refuse([
    ...unknown,
    ...wanted.filter(({ there }) => !tensors.has(there)).map(({ there }) => `no ${there}`),
  ]);
  const found = new Map<string, LazyTensor>();
  for (const [here, parts] of Map.groupBy(wanted, (tensor) => tensor.here)) {
    const own = parts.filter(({ copy }) => copy === undefined);
    const read = (part: ModelCenterTensor) => tensors.get(part.there) as LazyTensor;
    const whole = joined(
      own.toSorted((one, other) => (one.third ?? 0) - (other.third ?? 0)).map(read),
      0,
      here,
    );
    const turned = own.some((part) => part.transposed) ? transposed(whole) : whole;
    const copies = parts.filter(({ copy }) => copy === "equal");
    found.set(
      here,
      copies.reduce((tensor, copy) => agreeing(tensor, read(copy), copy.there), turned),
    );
  }
  return found;
}

/**
 * Renames a model's tensors to ModelCenter's names, copies included.
 * @throws {TroupeError} `CONVERT` for tensors that ModelCenter's model lacks, and for missing ones
 */
export function toModelCenterNames(tensors: NamedTensors, model: ModelCenterModel): Map<string, LazyTensor> {
  const isExpected = new Set(model.tensors.map(({ here }) => here));
  const unknown = [...tensors.keys()].filter(
    (name) => !isExpected.has(name) && !model.ignoredHere.some((pattern) => pattern.test(name)),
  );
  refuse([...unknown, ...[...isExpected].filter((name) => !tensors.has(name)).map((name) => `no ${name}`)]);
  return new Map(
    model.tensors.map(({ there, here, third, transposed: isTurned }) => {
      const tensor = tensors.get(here) as LazyTensor;
      const turned = isTurned ? transposed(tensor) : tensor;
      if (third === undefined) return [there, turned];
      const numRows = (turned.shape[0] ?? 0) / 3;
      return [there, cut(turned, 0, third * numRows, (third + 1) * numRows)];
    }),
  );
}

/** Checks, when a tensor is read, that it equals its copy. */
function agreeing(tensor: LazyTensor, copy: LazyTensor, name: string): LazyTensor {
  const read = async () => {
    const [bytes, again] = [await tensor.read(), await copy.read()];
    if (Buffer.compare(bytes, again) === 0) return bytes;
    throw convertError(
      `${name} to equal its copy, as Hugging Face's model shares one tensor`,
      "other values",
      "the two were trained separately, which Hugging Face's model cannot represent",
      { tensor: name },
    );
  };
  return { ...tensor, read };
}

function refuse(names: readonly string[]): void {
  if (names.length > 0)
    throw unsharedNames("exactly the tensors that ModelCenter's model and Hugging Face's share", names);
}
