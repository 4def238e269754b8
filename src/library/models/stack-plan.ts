import { below, sequence, type TensorPlan, unshared } from "../../compute/nn/index.ts";
import type { Reads } from "./heads/index.ts";

/** Properties of a stack that its plan depends on. */
export interface StackShape {
  readonly numLayers: number;
  /** Positions read of the last layer. */
  readonly reads: Reads;
  /** Name of the layer's `FirstPositions`, if it has one. */
  readonly first: string;
  /** Parts of the last layer that read all positions even so. */
  readonly ofAll: readonly string[];
}

/**
 * The plan of a stack of equal layers. If tensor-parallel ranks split the positions and only the first is read of the last layer, the
 * split ends there: every rank has that position.
 * @param list - name of the list of layers
 * @param layer - plan of one layer
 */
export function stackPlan(
  list: string,
  layer: TensorPlan,
  { numLayers, reads, first, ofAll }: StackShape,
): TensorPlan {
  if (reads === "all") return below(`${list}.*`, layer);
  const last: TensorPlan = {
    ...unshared(layer),
    ...Object.fromEntries(Object.entries(layer).filter(([name]) => ofAll.includes(name))),
    [`${first}.all`]: sequence({ output: "replicated" }),
  };
  const plans = Array.from({ length: numLayers }, (_, index) =>
    below(`${list}.${index}`, index === numLayers - 1 ? last : layer),
  );
  return Object.assign({}, ...plans) as TensorPlan;
}
