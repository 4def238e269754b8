import { below, sequence, type TensorPlan, unshared } from "../../compute/nn/index.ts";
import type { Reads } from "./heads/index.ts";

/** Of a stack of layers, what its plan depends on. */
export interface StackShape {
  readonly numLayers: number;
  /** What is read of the last of them. */
  readonly reads: Reads;
  /** Where a layer's `FirstPositions` stands, if it has one. */
  readonly first: string;
  /** What of a layer reads all positions even so. */
  readonly ofAll: readonly string[];
}

/**
 * The plan of a stack of like layers. Where tensor-parallel ranks share the positions and the first alone is read of the last
 * layer, it leaves them there: every rank has the one position, as if none were shared.
 * @param list - the name of the layers' list
 * @param layer - of one layer
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
