// Products whose rows do not depend on each other: each element is one fused sum over the inner dim, from its first number to its
// last, whatever the shapes beside it.
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe {

// Whether this thread computes products of such operands that way: float32, bfloat16 or float16.
bool multiplies_invariantly(const at::Tensor& a, const at::Tensor& b);

// a @ b + bias: a [M,K], b [K,N], any strides; bias undefined, or float and broadcast to [M,N]. Summed in float32, rounded once.
at::Tensor multiply_invariantly(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias);

}  // namespace troupe
