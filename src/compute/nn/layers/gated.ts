import { ops, type Tensor } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import { type ActivationName, activations } from "./activation.ts";

/**
 * Computes activation(gate) · up, element by element, the middle of a gated feed-forward layer: SwiGLU with "silu", in one
 * pass, and GEGLU with a gelu.
 * @param gate - [..., I], one float dtype for both
 * @param up - [..., I]
 * @see Shazeer 2020, https://arxiv.org/abs/2002.05202
 */
export function gated(activation: ActivationName, gate: Tensor, up: Tensor): Tensor {
  const isSilu = activation === "silu" || activation === "swish";
  if (isFused() && isSilu && gate.dtype !== "float64") return ops.troupe.swiglu(gate, up);
  return activations[activation](gate).mul(up);
}
