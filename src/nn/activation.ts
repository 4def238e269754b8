import { ops, type Tensor } from "../tensor/index.ts";

/**
 * Element-wise activations by the names of Hugging Face's configurations. `gelu` is exact (by erf); `gelu_new`,
 * `gelu_fast` and `gelu_pytorch_tanh` are three spellings of the tanh approximation; `quick_gelu` is x·σ(1.702 x).
 * @see Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415
 */
export const activations = {
  gelu: (x: Tensor): Tensor => ops.gelu(x),
  gelu_new: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  gelu_fast: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  gelu_pytorch_tanh: (x: Tensor): Tensor => ops.gelu(x, "tanh"),
  quick_gelu: (x: Tensor): Tensor => x.mul(x.mul(1.702).sigmoid()),
  relu: (x: Tensor): Tensor => x.relu(),
  silu: (x: Tensor): Tensor => ops.silu(x),
  swish: (x: Tensor): Tensor => ops.silu(x),
  tanh: (x: Tensor): Tensor => x.tanh(),
} as const;

/** A name in {@link activations}. */
export type ActivationName = keyof typeof activations;
