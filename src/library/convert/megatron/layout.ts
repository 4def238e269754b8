import type { MegatronModel, MegatronTensor } from "../../models/index.ts";
import { convertError } from "../convert-error.ts";
import { cut, joined, type LazyTensor, transposed, withRows } from "../lazy-tensor.ts";

/** Tensors by name. */
export type NamedTensors = ReadonlyMap<string, LazyTensor>;

/** The ranks of a Megatron-LM checkpoint, and its version. */
export interface MegatronLayout {
  readonly tp: number;
  readonly pp: number;
  /** The `checkpoint_version`, which decides the order of rows of queries, keys and values. */
  readonly version: number;
}

const otherModel = "does config.json describe this model?";

/** Megatron-LM rounds a vocabulary up to a multiple of this for each tensor-parallel rank. */
const tokensDivisibleBy = 128;

/** The contents of one rank's file. */
export interface MegatronShard {
  readonly tp: number;
  readonly pp: number;
  readonly tensors: NamedTensors;
}

/**
 * Splits a model, by Hugging Face's names, into the files of Megatron-LM's ranks. Reads nothing yet.
 * @throws {TroupeError} `CONVERT` for a layout that does not divide the model, or a missing tensor
 */
export function splitForMegatron(
  weights: NamedTensors,
  model: MegatronModel,
  layout: MegatronLayout,
): MegatronShard[] {
  checkLayout(model, layout);
  const whole = model.tensors.map((tensor) => ({
    tensor,
    value: toMegatron(weights, tensor, model, layout),
  }));
  const shards: MegatronShard[] = [];
  for (let pp = 0; pp < layout.pp; pp++) {
    for (let tp = 0; tp < layout.tp; tp++) {
      const tensors = new Map<string, LazyTensor>();
      for (const { tensor, value } of whole) {
        const name = nameOnStage(tensor, model, layout, pp);
        if (name !== undefined) tensors.set(name, shareOf(value, tensor, model, layout, tp));
      }
      shards.push({ tp, pp, tensors });
    }
  }
  return shards;
}

/**
 * Joins the files of Megatron-LM's ranks into a model with Hugging Face's names. Reads nothing yet.
 * @throws {TroupeError} `CONVERT` for a tensor that is missing in a rank or that the configured model lacks
 */
export function joinFromMegatron(
  shards: readonly MegatronShard[],
  model: MegatronModel,
  layout: MegatronLayout,
): Map<string, LazyTensor> {
  checkLayout(model, layout);
  const result = new Map<string, LazyTensor>();
  const known = new Set<string>();
  for (const tensor of model.tensors) {
    const stage = stageOf(tensor, model, layout);
    const name = nameOnStage(tensor, model, layout, stage) as string;
    known.add(`${stage} ${name}`);
    const ranks = shards.filter(({ pp }) => pp === stage).toSorted((a, b) => a.tp - b.tp);
    const shares = ranks.map(
      ({ tensors, tp }) => tensors.get(name) ?? absent(name, `rank ${tp} of stage ${stage}`),
    );
    for (const [part, value] of fromMegatron(shares, tensor, model, layout)) result.set(part, value);
  }
  for (const { pp, tensors } of shards) {
    for (const name of tensors.keys()) {
      // The last pipeline stage has a copy of the embedding, for its output layer.
      if (known.has(`${pp} ${name}`) || name.startsWith("word_embeddings_for_head.")) continue;
      throw convertError(
        "tensors of the model that config.json describes",
        JSON.stringify(name),
        "is it the right config.json?",
        { tensor: name },
      );
    }
  }
  return result;
}

/** Size of a vocabulary after Megatron-LM's rounding. */
function paddedVocabSize(vocabSize: number, tp: number): number {
  const multiple = tokensDivisibleBy * tp;
  return Math.ceil(vocabSize / multiple) * multiple;
}

/** The complete tensor in Megatron-LM's form, except for the order of fused rows: queries, keys, values. */
function toMegatron(
  weights: NamedTensors,
  tensor: MegatronTensor,
  model: MegatronModel,
  { tp }: MegatronLayout,
) {
  const parts = tensor.here.map((name) => {
    const part =
      weights.get(name) ?? weights.get(withoutPrefix(name)) ?? absent(name, "the model to convert");
    const plain = tensor.asRow ? { ...part, shape: part.shape.slice(1) } : part;
    const agreed = (tensor.copies ?? []).reduce((value, copy) => asIn(value, weights.get(copy), copy), plain);
    return tensor.transposed ? transposed(agreed) : agreed;
  });
  const value = joined(parts, 0, tensor.there);
  if (!tensor.perToken) return value;
  checkRows(value, tensor, model.vocabSize);
  return withRows(value, range(paddedVocabSize(model.vocabSize, tp)));
}

function shareOf(
  value: LazyTensor,
  tensor: MegatronTensor,
  model: MegatronModel,
  layout: MegatronLayout,
  rank: number,
) {
  if (tensor.splitDim === undefined) return value;
  if (tensor.fused) return withRows(value, fusedRows(value, tensor.fused, model, layout, rank));
  const size = value.shape[tensor.splitDim] ?? 0;
  checkDivides(tensor.there, size, "tp", layout.tp);
  const share = size / layout.tp;
  return layout.tp === 1 ? value : cut(value, tensor.splitDim, rank * share, (rank + 1) * share);
}

function* fromMegatron(
  shares: readonly LazyTensor[],
  tensor: MegatronTensor,
  model: MegatronModel,
  layout: MegatronLayout,
): Generator<[string, LazyTensor]> {
  let value =
    tensor.splitDim === undefined ? (shares[0] as LazyTensor) : joined(shares, tensor.splitDim, tensor.there);
  const { fused } = tensor;
  if (fused) {
    const order = range(layout.tp).flatMap((rank) => fusedRows(value, fused, model, layout, rank));
    value = withRows(value, inverse(order));
  }
  if (tensor.perToken) {
    checkRows(value, tensor, model.vocabSize);
    value = withRows(value, range(model.vocabSize));
  }
  const numRows = (value.shape[0] ?? 0) / tensor.here.length;
  for (const [index, name] of tensor.here.entries()) {
    const part = tensor.here.length === 1 ? value : cut(value, 0, index * numRows, (index + 1) * numRows);
    const turned = tensor.transposed ? transposed(part) : part;
    const whole = tensor.asRow ? { ...turned, shape: [1, ...turned.shape] } : turned;
    for (const each of [name, ...(tensor.copies ?? [])]) yield [each, whole];
  }
}

/** Checks, when a tensor is read, that it equals its copy. */
function asIn(tensor: LazyTensor, copy: LazyTensor | undefined, name: string): LazyTensor {
  const read = async () => {
    const [bytes, others] = await Promise.all([
      tensor.read(),
      (copy ?? absent(name, "the model to convert")).read(),
    ]);
    if (Buffer.compare(bytes, others) === 0) return bytes;
    throw convertError(
      `${name} to equal the other stack's, since Megatron-LM shares one`,
      "other values",
      "write it as hf",
      { tensor: name },
    );
  };
  return { ...tensor, read };
}

/**
 * The rows of [n, heads, width] on one rank, in the order of a checkpoint's version: 0 keeps [n, heads, width], 1 has [heads, width,
 * n], later ones [heads, n, width], over the rank's own heads. n is 3 for queries, keys, values, or 2.
 */
function fusedRows(
  value: LazyTensor,
  numMaps: number,
  model: MegatronModel,
  { tp, version }: MegatronLayout,
  rank: number,
): number[] {
  const { numHeads } = model;
  const numRows = value.shape[0] ?? 0;
  checkDivides("rows of queries, keys and values", numRows, `${numMaps} × heads`, numMaps * numHeads);
  const width = numRows / numMaps / numHeads;
  const heads = range(numHeads / tp).map((head) => head + (rank * numHeads) / tp);
  const row = (part: number, head: number, place: number) => (part * numHeads + head) * width + place;
  const [parts, places] = [range(numMaps), range(width)];
  if (version === 0) return parts.flatMap((p) => heads.flatMap((h) => places.map((w) => row(p, h, w))));
  if (version === 1) return heads.flatMap((h) => places.flatMap((w) => parts.map((p) => row(p, h, w))));
  return heads.flatMap((h) => parts.flatMap((p) => places.map((w) => row(p, h, w))));
}

function stageOf({ place }: MegatronTensor, { numLayers }: MegatronModel, { pp }: MegatronLayout): number {
  if (place === "first") return 0;
  return place === "last" ? pp - 1 : Math.floor(place / (numLayers / pp));
}

/** Name of a tensor in a stage's files, which count its layers from 0; undefined if the stage lacks it. */
function nameOnStage(tensor: MegatronTensor, model: MegatronModel, layout: MegatronLayout, stage: number) {
  if (stageOf(tensor, model, layout) !== stage) return undefined;
  if (typeof tensor.place !== "number") return tensor.there;
  const index = tensor.place - (stage * model.numLayers) / layout.pp;
  return tensor.there.replace(`.layers.${tensor.place}.`, `.layers.${index}.`);
}

/** Some folders omit the prefix before GPT-2's stack. */
const withoutPrefix = (name: string): string => name.replace(/^transformer\./, "");

function inverse(order: readonly number[]): number[] {
  const places = new Array<number>(order.length);
  order.forEach((row, index) => {
    places[row] = index;
  });
  return places;
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);

function absent(name: string, where: string): never {
  throw convertError(`tensor ${JSON.stringify(name)} in ${where}`, "none", otherModel, { tensor: name });
}

function checkLayout(model: MegatronModel, { tp, pp }: MegatronLayout): void {
  checkDivides("heads", model.numHeads, "tp", tp);
  if (model.isPipelined) checkDivides("layers", model.numLayers, "pp", pp);
  else if (pp !== 1) {
    const hint = "use pp 1, with as many tp as divide the heads";
    throw convertError("one pipeline stage for an encoder-decoder", `pp ${pp}`, hint, { pp });
  }
}

function checkRows(value: LazyTensor, { there: name }: MegatronTensor, vocabSize: number): void {
  if ((value.shape[0] ?? 0) >= vocabSize) return;
  const expected = `at least ${vocabSize} rows in ${name}, one per token`;
  throw convertError(expected, `${value.shape[0]}`, otherModel, { tensor: name });
}

function checkDivides(what: string, size: number, axis: string, by: number): void {
  if (Number.isSafeInteger(by) && by >= 1 && size % by === 0) return;
  throw convertError(`${axis} to divide ${what}, ${size}`, `${by}`, "choose a divisor", { size, by });
}
