import {
  type Communicator,
  copyToGroup,
  gatherFromGroup,
  reduceFromGroup,
  scatterToGroup,
} from "../../collectives/index.ts";
import { type Affine, type ColumnRule, type RowRule, wrapForward } from "../../nn/index.ts";
import { ops, scope, type Tensor, tensor } from "../../tensor/index.ts";
import type { SequenceRegion } from "./sequence-region.ts";

/** Wraps an affine map with split outputs: replicated or gathered input, local product, some of the features. */
export function wrapColumn(
  module: Affine,
  rule: ColumnRule,
  input: "replicated" | "sequence",
  region: SequenceRegion,
): void {
  const { group } = region;
  wrapForward(module, (forward, [x]) =>
    scope(() => {
      const features =
        input === "replicated" ? forward(copyToGroup(x, group)) : region.gatherOutputs(x, module);
      return rule.output === "replicated" ? joinFeatures(features, rule.parts, group) : features;
    }),
  );
}

/**
 * Wraps an affine map that is complete on every rank because readers on several ranks share its units of outputs: a rank keeps
 * the features that its own readers read. The caller sums gradients of weight and bias.
 * @returns `[..., units here · unit]`: one unit for all readers of the rank, if equally many read each, else one each
 */
export function wrapShared(
  module: Affine,
  rule: ColumnRule,
  input: "replicated" | "sequence",
  region: SequenceRegion,
): void {
  const { group } = region;
  const numUnits = (module.weight.shape[module.outputDim] ?? 0) / rule.unit;
  const units = unitsRead(numUnits, rule.readers, group.rank, group.size);
  const withZeros = (blocks: Tensor) =>
    units.includes(numUnits) ? ops.constantPadNd(blocks, [0, 0, 0, 1]) : blocks;
  wrapForward(module, (forward, [x]) =>
    scope(() => {
      const all = input === "replicated" ? forward(copyToGroup(x, group)) : region.gatherOutputs(x, module);
      const blocks = all.view([...all.shape.slice(0, -1), numUnits, rule.unit]);
      const read = withZeros(blocks).indexSelect(-2, tensor(units, { dtype: "int64" }));
      return read.reshape([...all.shape.slice(0, -1), -1]);
    }),
  );
}

/**
 * The units that the readers of a rank read: each once if equally many readers share it, else one for each reader. Readers
 * beyond the last, which are padding, read the unit behind the last one, zeros: so their results are zero too.
 */
export function unitsRead(numUnits: number, readers: number, rank: number, count: number): number[] {
  const numReaders = Math.ceil((numUnits * readers) / count);
  const read = Array.from({ length: numReaders }, (_, index) =>
    Math.min(numUnits, Math.floor((rank * numReaders + index) / readers)),
  );
  const distinct = [...new Set(read)];
  const timesRead = distinct.map((unit) => read.filter((other) => other === unit).length);
  return new Set(timesRead).size === 1 ? distinct : read;
}

/** Wraps an affine map with split inputs: local product, sum over the ranks, and then, once, bias and activation. */
export function wrapRow(
  module: Affine,
  rule: RowRule,
  output: "replicated" | "sequence",
  region: SequenceRegion,
): void {
  wrapForward(module, (_, [x]) =>
    scope(() => {
      const own = ownFeatures(x, rule, module, region);
      return module.finish(
        output === "sequence"
          ? region.productScatter(own, module)
          : reducedProduct(own, module, region.group),
      );
    }),
  );
}

/** The sum of all ranks' products; for a low-rank addition, sums of its narrow half. */
function reducedProduct(given: Tensor, module: Affine, group: Communicator): Tensor {
  const x = module.scaledInputs(given);
  const own = reduceFromGroup(module.ownProduct(x), group);
  return module.added === undefined ? own : module.withAdded(own, reduceFromGroup(module.down(x), group));
}

function ownFeatures(x: Tensor, { input }: RowRule, module: Affine, region: SequenceRegion): Tensor {
  if (input === "split") return withoutPadding(x, module, region.group);
  const gathered = input === "sequence" ? region.leave(x) : x;
  return scatterToGroup(gathered, region.group, gathered.ndim - 1);
}

/** Zeroes the padding of a rank that holds less than the others: an activation may have changed it. */
function withoutPadding(x: Tensor, { weight, outputDim }: Affine, group: Communicator): Tensor {
  const dim = 1 - outputDim;
  const [numHeld = 0, numInputs = 0] = [weight.shape[dim], weight.split?.logicalShape[dim]];
  const numHere = Math.max(0, Math.min(numHeld, numInputs - group.rank * numHeld));
  if (weight.split === undefined || numHere === numHeld) return x;
  return ops.constantPadNd(x.narrow(-1, 0, numHere), [0, numHeld - numHere]);
}

/** Joins features of which every rank holds a piece of each of `parts` blocks: [..., parts · n / count] → [..., parts · n]. */
function joinFeatures(features: Tensor, parts: number, group: Communicator): Tensor {
  const lead = features.shape.slice(0, -1);
  const blocks = features.view([...lead, parts, -1]);
  return gatherFromGroup(blocks, group, blocks.ndim - 1).reshape([...lead, -1]);
}
