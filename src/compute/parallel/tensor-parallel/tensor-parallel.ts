import { type Communicator, copyToGroup } from "../../collectives/index.ts";
import * as nn from "../../nn/index.ts";
import { scope, type Tensor } from "../../tensor/index.ts";
import { mapTensors } from "../tape/map-tensors.ts";
import { cutParameters } from "./cut-parameters.ts";
import { type Match, matchPlan } from "./match-plan.ts";
import { SequenceRegion } from "./sequence-region.ts";
import { unitsRead, wrapColumn, wrapRow, wrapShared } from "./split-affine.ts";
import { wrapEmbedding, wrapHead } from "./split-vocabulary.ts";

/** Options of tensor parallelism. */
export interface TensorParallelOptions {
  /** Whether the ranks share the positions between the split layers. Default: false. */
  readonly sequenceParallel?: boolean;
  /** The dim of positions in activations. Default: 1, as in [B, T, D]. */
  readonly sequenceDim?: number;
  /**
   * Number of chunks in which gathering positions overlaps the product behind it, and the product the reduction behind it, if
   * positions are shared and divide. Default: 1, no overlap. Never changes the result.
   */
  readonly overlapChunks?: number;
}

/**
 * Splits a model that is written for one device over the ranks of `group`: cuts its parameters and wraps the modules that the
 * plan names. Every rank calls it on its own copy of the model, feeds all copies the same, and gets the one-device model's
 * results, up to the order of sums. Gradients need no further sums: those of replicated parameters are complete, and equal, on
 * every rank.
 * @param model - without memory
 * @returns the region of shared positions, for running parts of the model again in backward; undefined for one rank
 * @throws {TroupeError} `TENSOR_PLAN` if the plan does not fit the model, `PARAMETER_SPLIT` if it does not divide
 */
export function tensorParallel(
  model: nn.Module,
  plan: nn.TensorPlan,
  group: Communicator,
  options: TensorParallelOptions = {},
): SequenceRegion | undefined {
  cutParameters(model, plan, { index: group.rank, count: group.size });
  if (group.size === 1) return undefined;
  const region = new SequenceRegion(group, options.sequenceDim ?? 1, options.overlapChunks ?? 1);
  for (const match of matchPlan(model, plan)) wrap(match, region, options.sequenceParallel === true);
  return region;
}

function wrap(match: Match, region: SequenceRegion, sequence: boolean): void {
  const between = sequence ? "sequence" : "replicated";
  const { group } = region;
  switch (match.kind) {
    case "column":
      splitOutputs(match, match.rule.input ?? between, region);
      break;
    case "row": {
      const output = match.rule.output ?? between;
      if (output === "sequence") sumOutside(match.module, region);
      maskFeatures(match.module, group);
      wrapRow(match.module, match.rule, output, region);
      break;
    }
    case "vocabulary":
      if (match.module instanceof nn.VocabularyHead)
        wrapHead(match.module, match.rule.input ?? between, region);
      else wrapEmbedding(match.module, group);
      break;
    case "features":
      break; // its lookup is split by itself
    case "sequence":
      if (sequence) splitPositions(match.module, match.rule, region);
      break;
    case "replicated":
      if (sequence) gatherPositions(match.module, region);
      break;
    case "mask":
      match.module.split = pieceMasked(match.rule, group);
      break;
    default:
      match satisfies never;
  }
}

function pieceMasked({ dim, size }: nn.MaskRule, { rank: index, size: count }: Communicator): nn.MaskSplit {
  const padding = size === undefined ? 0 : Math.ceil(size / count) * count - size;
  return { dim, index, count, padding };
}

function splitOutputs(
  { module, rule }: Extract<Match, { kind: "column" }>,
  input: "replicated" | "sequence",
  region: SequenceRegion,
): void {
  const { added, prefix, scale } = module;
  if (prefix !== undefined) splitPrefix(prefix, module, rule, region.group);
  if (input === "sequence") maskPositions(added?.before, region);
  if (module.weight.split === undefined) {
    for (const parameter of module.parameters()) sumGradient(parameter, region.group);
    wrapShared(module, rule, input, region);
  } else {
    // Each rank has the gradient of its own outputs.
    sumGradient(added?.down.weight, region.group);
    if (scale?.of === "inputs") sumGradient(scale.factors, region.group);
    wrapColumn(module, rule, input, region);
  }
}

/** Splits prefixes by heads: each rank keeps those of its own heads, and their gradient. */
function splitPrefix(
  prefix: nn.PrefixHeads,
  { weight, outputDim }: nn.Affine,
  rule: nn.ColumnRule,
  group: Communicator,
): void {
  const { numHeads, headWidth, table } = prefix;
  const held = (weight.shape[outputDim] ?? 0) / rule.parts / headWidth;
  prefix.heads =
    weight.split === undefined
      ? unitsRead(numHeads, rule.readers, group.rank, group.size)
      : Array.from({ length: held }, (_, place) => Math.min(numHeads, group.rank * held + place));
  for (const parameter of table.parameters()) sumGradient(parameter, group);
}

/** Behind a row that scatters positions, parameters see the gradient of a rank's own positions only. */
function sumOutside({ bias, added, scale, behind }: nn.Affine, region: SequenceRegion): void {
  const factors = scale?.of === "outputs" ? scale.factors : undefined;
  for (const parameter of [bias, added?.up.weight, factors, ...(behind?.parameters() ?? [])])
    sumGradient(parameter, region.group);
  maskPositions(behind, region);
}

/** The dropout of a row's inputs masks those that the rank has. */
function maskFeatures({ added }: nn.Affine, { rank: index, size: count }: Communicator): void {
  if (added === undefined) return;
  const { shape, split } = added.down.weight;
  const padding = split === undefined ? 0 : (shape[1] ?? 0) * count - (split.logicalShape[1] ?? 0);
  for (const dropout of dropoutsIn(added.before)) dropout.split = { dim: -1, index, count, padding };
}

function maskPositions(module: nn.Module | undefined, region: SequenceRegion): void {
  for (const dropout of dropoutsIn(module)) dropout.split = positionsMasked(region);
}

function dropoutsIn(module: nn.Module | undefined): nn.Dropout[] {
  return [...(module?.namedModules().values() ?? [])].filter((inner) => inner instanceof nn.Dropout);
}

/** Makes a module compute on the rank's share of the positions. */
function splitPositions(module: nn.Module, rule: nn.SequenceRule, region: SequenceRegion): void {
  const { group } = region;
  for (const parameter of module.parameters()) sumGradient(parameter, group);
  maskPositions(module, region);
  if (rule.input === "sequence" && rule.output === "sequence") return;
  nn.wrapForward(module, (forward, inputs) =>
    scope(() => {
      const [x, ...rest] = inputs as unknown as [Tensor, ...unknown[]];
      const share = rule.input === "replicated" ? region.enter(x) : x;
      const out = (forward as (...args: unknown[]) => Tensor)(share, ...rest);
      return (rule.output === "replicated" ? region.leave(out) : out) as never;
    }),
  );
}

/** The rank's share of the positions as a mask; the last ones may be padding. */
function positionsMasked(region: SequenceRegion): nn.MaskSplit {
  const { group, dim } = region;
  return {
    dim,
    index: group.rank,
    count: group.size,
    get padding() {
      return region.numPadding;
    },
  };
}

/** Makes a module compute on all positions, every rank alike, and keeps the rank's share of its result. */
function gatherPositions(module: nn.Module, region: SequenceRegion): void {
  nn.wrapForward(module, (forward, inputs) =>
    scope(() => {
      const [x, ...rest] = inputs as unknown as [Tensor, ...unknown[]];
      const gathered = region.leave(x);
      const length = gathered.shape[region.dim];
      const answer = (forward as (...args: unknown[]) => unknown)(gathered, ...rest);
      return mapTensors(answer, (part) =>
        part.ndim > region.dim && part.shape[region.dim] === length ? region.enter(part) : part,
      ) as never;
    }),
  );
}

/** Sums a gradient that each rank has for its own positions over the ranks, within autograd. */
function sumGradient(parameter: nn.Parameter | null | undefined, group: Communicator): void {
  parameter?.readThrough((memory) => copyToGroup(memory, group));
}
