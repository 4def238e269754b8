import { isInvariant, ops, type Tensor, zeros } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";

// biome-ignore lint/suspicious/noApproximativeNumericConstant: six digits, as transformers has them
const LAPLACE_MEAN = 0.707107;

/**
 * Element-wise activations by the names in Hugging Face's configurations. `gelu` and `gelu_python` are exact (by erf);
 * `gelu_new`, `gelu_fast`, `gelu_accurate`, `gelu_python_tanh` and `gelu_pytorch_tanh` are spellings of the tanh approximation;
 * `quick_gelu` is x·σ(1.702 x); `gelu_10` is clamped to ±10; `relu2` is the square of relu; `laplace` is the distribution
 * function with μ = 0.707107 and σ = 0.282095, a smooth relu2. Activations with parameters, `prelu` and `xielu`, are missing.
 * @see Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415; of laplace Ma et al. 2022, https://arxiv.org/abs/2209.10655
 */
export const activations = {
  gelu: (x: Tensor): Tensor => ops.gelu(x),
  gelu_python: (x: Tensor): Tensor => ops.gelu(x),
  gelu_10: (x: Tensor): Tensor => ops.gelu(x).clamp(-10, 10),
  gelu_new: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  gelu_fast: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  gelu_accurate: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  gelu_python_tanh: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  gelu_pytorch_tanh: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  quick_gelu: (x: Tensor): Tensor => x.mul(x.mul(1.702).sigmoid()),
  hardswish: (x: Tensor): Tensor => ops.hardswish(x),
  laplace: (x: Tensor): Tensor =>
    ops
      .erf(x.sub(LAPLACE_MEAN).div(0.282095 * Math.SQRT2))
      .add(1)
      .mul(0.5),
  linear: (x: Tensor): Tensor => x,
  leaky_relu: (x: Tensor): Tensor => ops.leakyRelu(x),
  mish: (x: Tensor): Tensor => ops.mish(x),
  relu: (x: Tensor): Tensor => x.relu(),
  relu2: (x: Tensor): Tensor => x.relu().square(),
  relu6: (x: Tensor): Tensor => ops.relu6(x),
  sigmoid: (x: Tensor): Tensor => x.sigmoid(),
  silu: (x: Tensor): Tensor => ops.silu(x),
  sqrtsoftplus: (x: Tensor): Tensor => ops.softplus(x).sqrt(),
  swish: (x: Tensor): Tensor => ops.silu(x),
  tanh: (x: Tensor): Tensor => x.tanh(),
} as const;

/** A name in {@link activations}. */
export type ActivationName = keyof typeof activations;

/** Returns libtorch's `approximate` for any spelling of gelu; undefined for other activations. */
export function geluForm(name: ActivationName | undefined): "none" | "tanh" | undefined {
  return name === undefined ? undefined : geluForms[name];
}

const geluForms: Readonly<Partial<Record<ActivationName, "none" | "tanh">>> = {
  gelu: "none",
  gelu_python: "none",
  gelu_new: "tanh",
  gelu_fast: "tanh",
  gelu_accurate: "tanh",
  gelu_python_tanh: "tanh",
  gelu_pytorch_tanh: "tanh",
};

/**
 * The middle of a gated feed-forward layer: activation(gate) · up, element by element; SwiGLU with "silu", in one pass, and
 * GEGLU with a gelu.
 * @param gate - [..., I], one float dtype for both
 * @param up - [..., I]
 * @see Shazeer 2020, https://arxiv.org/abs/2002.05202
 */
export function gated(activation: ActivationName, gate: Tensor, up: Tensor): Tensor {
  const isSilu = activation === "silu" || activation === "swish";
  if (isFused() && isSilu && gate.dtype !== "float64") return ops.troupe.swiglu(gate, up);
  const form = geluForm(activation);
  const { dtype, device } = gate;
  if (form === undefined || !isInvariant() || dtype === "float64" || device === "meta")
    return activations[activation](gate).mul(up);
  // The bits of libtorch's gelu depend on an element's place.
  const bias = zeros([gate.shape.at(-1) ?? 0], { dtype, device });
  return ops.troupe.biasGelu(gate, bias, form).mul(up);
}
