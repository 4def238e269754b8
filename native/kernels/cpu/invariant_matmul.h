// Products whose rows do not depend on each other: each element is one fused sum over the inner dim, from its first number to its
// last, whatever the shapes beside it. The same bits on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe {

// Whether this thread computes a product of such operands that way: two matrices, or as many in `dim` 3, of float32, bfloat16 or
// float16, whose sizes fit.
bool multiplies_invariantly(const at::Tensor& a, const at::Tensor& b, int64_t dim);

// a @ b + bias: a [M,K], b [K,N], any strides; bias undefined, or float and broadcast to [M,N]. Summed in float32, rounded once.
at::Tensor multiply_invariantly(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias);

// beta bias + alpha a @ b, rounded once where both factors are 1.
at::Tensor multiply_and_add_invariantly(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                                        const at::Scalar& alpha);

// a [G,M,K], b [G,K,N].
at::Tensor multiply_batches_invariantly(const at::Tensor& a, const at::Tensor& b);

}  // namespace troupe
