import { below, mask, sequence, type TensorPlan, unshared } from "../../compute/nn/index.ts";
import type { Reads } from "./heads/index.ts";
import { column, row } from "./uneven.ts";

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
 * The plan of a stack of equal layers, `encoder.layer`. If tensor-parallel ranks split the positions and only the first is read of the last layer, the
 * split ends there: every rank has that position.
 * @param layer - plan of one layer
 */
export function stackPlan(layer: TensorPlan, { numLayers, reads, first, ofAll }: StackShape): TensorPlan {
  if (reads === "all") return below("encoder.layer.*", layer);
  const last: TensorPlan = {
    ...unshared(layer),
    ...Object.fromEntries(Object.entries(layer).filter(([name]) => ofAll.includes(name))),
    [`${first}.all`]: sequence({ output: "replicated" }),
  };
  const plans = Array.from({ length: numLayers }, (_, index) =>
    below(`encoder.layer.${index}`, index === numLayers - 1 ? last : layer),
  );
  return Object.assign({}, ...plans) as TensorPlan;
}

/**
 * The plan of a layer of `encoder-parts.ts`, without its norms: attention is split by heads, the feed-forward half by inner features.
 * @param attention - name of its self-attention
 */
export function encoderLayerPlan(
  attention: string,
  shape: { readonly hidden_size: number; readonly num_attention_heads: number },
): TensorPlan {
  const unit = shape.hidden_size / shape.num_attention_heads;
  return {
    ...below(attention, {
      query: column({ unit }),
      key: column({ unit }),
      value: column({ unit }),
      dropout: mask(1, shape.num_attention_heads), // [B, H, T, T]
    }),
    "attention.output.dense": row({ unit }),
    "attention.output.dropout": sequence(),
    "intermediate.dense": column(),
    "output.dense": row(),
    "output.dropout": sequence(),
  };
}
