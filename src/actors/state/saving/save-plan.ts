import { type OptimizerSpec, updateRuleOf } from "../../../compute/optim/index.ts";
import { type FlatBlock, MASTER, savedLayouts, savesPart } from "../../../compute/parallel/index.ts";
import type { PartPlan, SavePlan, StateEntry } from "../../protocols/index.ts";

const compare = <T>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0);

/** The parameters' own values first. */
const kindOf = ({ kind }: StateEntry) => (kind === MASTER ? "" : kind);

/**
 * @returns the parts that a rank's shard sends when the state is saved, block after block
 * @param isKept - whether the optimizers keep state of a block; default for blocks declared trainable
 */
export function partsOf(
  layouts: readonly FlatBlock[],
  rank: number,
  optimizers: readonly OptimizerSpec[],
  isKept = ({ trainable }: FlatBlock) => trainable,
): PartPlan[] {
  const rules = optimizers.map(updateRuleOf);
  return layouts
    .filter((layout) => savesPart(layout, rank))
    .map((layout) => {
      const state = savedLayouts(layout, rank, rules, isKept(layout));
      return {
        sizeBytes: 4 * state.reduce((sum, { numel }) => sum + numel, 0),
        entries: state.flatMap(({ kind, pieces }) =>
          pieces.map(({ parameter: { name, shape, split, dtype }, parameterBegin: begin, numel }) => ({
            kind,
            parameter: name,
            shape: split?.logicalShape ?? shape,
            ...(layout.constant && { dtype }),
            held: { shape, split, begin, numel },
          })),
        ),
      };
    });
}

/** @param ranks - the parts of each, in rank order @param parameters - names of the model's parameters, in order */
export function planSave(ranks: readonly (readonly PartPlan[])[], parameters: readonly string[]): SavePlan {
  const parts = ranks.flat();
  const places = new Map(parameters.map((name, place) => [name, place]));
  const entries = new Map(
    parts.flatMap((part) =>
      part.entries.map(({ held: _, ...entry }) => [`${entry.kind} ${entry.parameter}`, entry]),
    ),
  );
  const placeOf = ({ parameter }: StateEntry) => places.get(parameter) ?? 0;
  return {
    numParts: parts.length,
    stagedBytes: parts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    entries: [...entries.values()].toSorted(
      (a, b) => compare(kindOf(a), kindOf(b)) || compare(placeOf(a), placeOf(b)),
    ),
  };
}
