import { TroupeError } from "../../../errors/index.ts";
import type { ModelCenterModel, ModelCenterTensor } from "../../models/index.ts";
import { cut, joined, type LazyTensor, transposed } from "../lazy-tensor.ts";

type NamedTensors = ReadonlyMap<string, LazyTensor>;

/** Whether tensors of these names are those of a model of ModelCenter. */
export function looksLikeModelCenter(names: Iterable<string>): boolean {
  return [...names].some((name) => name.endsWith(".self_att.self_attention.project_q.weight"));
}

/**
 * A model of ModelCenter's by Hugging Face's names.
 * @throws {TroupeError} `CONVERT` for names that are missing or that the model has none of; while reading, for copies that differ
 */
export function fromModelCenter(tensors: NamedTensors, model: ModelCenterModel): Map<string, LazyTensor> {
  const isExpected = new Set(model.tensors.map(({ name }) => name));
  const unknown = [...tensors.keys()].filter(
    (name) => !isExpected.has(name) && !model.ignored.some((pattern) => pattern.test(name)),
  );
  const wanted = model.tensors.filter(({ copy }) => copy !== "unread");
  refuse([...unknown, ...wanted.filter(({ name }) => !tensors.has(name)).map(({ name }) => `no ${name}`)]);
  const found = new Map<string, LazyTensor>();
  for (const [of, parts] of Map.groupBy(wanted, (tensor) => tensor.of)) {
    const own = parts.filter(({ copy }) => copy === undefined);
    const read = (part: ModelCenterTensor) => tensors.get(part.name) as LazyTensor;
    const whole = joined(
      own.toSorted((one, other) => (one.third ?? 0) - (other.third ?? 0)).map(read),
      0,
      of,
    );
    const turned = own.some((part) => part.transposed) ? transposed(whole) : whole;
    const copies = parts.filter(({ copy }) => copy === "equal");
    found.set(
      of,
      copies.reduce((tensor, copy) => agreeing(tensor, read(copy), copy.name), turned),
    );
  }
  return found;
}

/**
 * A model's tensors by ModelCenter's names, copies included.
 * @throws {TroupeError} `CONVERT` for what ModelCenter's model has no place for, and for what is missing
 */
export function toModelCenter(tensors: NamedTensors, model: ModelCenterModel): Map<string, LazyTensor> {
  const isExpected = new Set(model.tensors.map(({ of }) => of));
  const unknown = [...tensors.keys()].filter(
    (name) => !isExpected.has(name) && !model.ignoredHere.some((pattern) => pattern.test(name)),
  );
  refuse([...unknown, ...[...isExpected].filter((name) => !tensors.has(name)).map((name) => `no ${name}`)]);
  return new Map(
    model.tensors.map(({ name, of, third, transposed: isTurned }) => {
      const tensor = tensors.get(of) as LazyTensor;
      const turned = isTurned ? transposed(tensor) : tensor;
      if (third === undefined) return [name, turned];
      const numRows = (turned.shape[0] ?? 0) / 3;
      return [name, cut(turned, 0, third * numRows, (third + 1) * numRows)];
    }),
  );
}

/** A tensor that another must equal, which is found out when it is read. */
function agreeing(tensor: LazyTensor, copy: LazyTensor, name: string): LazyTensor {
  const read = async () => {
    const [bytes, again] = [await tensor.read(), await copy.read()];
    if (Buffer.compare(bytes, again) === 0) return bytes;
    throw new TroupeError(
      "CONVERT",
      {
        where: "convert",
        expected: `${name} to equal what Hugging Face has once`,
        got: "other values",
        hint: "the two were trained apart, and the model is none of Hugging Face's",
      },
      { fields: { tensor: name } },
    );
  };
  return { ...tensor, read };
}

function refuse(names: readonly string[]): void {
  if (names.length === 0) return;
  const shown = names.slice(0, 4).join(", ");
  throw new TroupeError(
    "CONVERT",
    {
      where: "convert",
      expected: "exactly the tensors that ModelCenter's model and Hugging Face's have both",
      got: names.length > 4 ? `${shown}, and ${names.length - 4} more` : shown,
      hint: "does config.json describe this model, its head among its architectures?",
    },
    { fields: { names } },
  );
}
