import { ops, type Tensor } from "../../tensor/index.ts";

/**
 * Element-wise activations by the names of Hugging Face's configurations. `gelu` and `gelu_python` are exact (by erf);
 * `gelu_new`, `gelu_fast`, `gelu_accurate`, `gelu_python_tanh` and `gelu_pytorch_tanh` are spellings of the tanh approximation;
 * `quick_gelu` is x·σ(1.702 x), `gelu_10` ends at ±10, `relu2` is the square. Each makes 0 of 0, which uneven splits rely on:
 * so there is no `sigmoid`.
 * @see Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415
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
  linear: (x: Tensor): Tensor => x,
  leaky_relu: (x: Tensor): Tensor => ops.leakyRelu(x),
  mish: (x: Tensor): Tensor => ops.mish(x),
  relu: (x: Tensor): Tensor => x.relu(),
  relu2: (x: Tensor): Tensor => x.relu().square(),
  relu6: (x: Tensor): Tensor => ops.relu6(x),
  silu: (x: Tensor): Tensor => ops.silu(x),
  swish: (x: Tensor): Tensor => ops.silu(x),
  tanh: (x: Tensor): Tensor => x.tanh(),
} as const;

/** A name in {@link activations}. */
export type ActivationName = keyof typeof activations;

/** Whether it is the tanh approximation of gelu, by any of its spellings. */
export function isTanhGelu(name: ActivationName | undefined): boolean {
  return name !== undefined && tanhGelus.includes(name);
}

const tanhGelus: readonly ActivationName[] = [
  "gelu_new",
  "gelu_fast",
  "gelu_accurate",
  "gelu_python_tanh",
  "gelu_pytorch_tanh",
];
