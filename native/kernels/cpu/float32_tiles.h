// Products of small float32 matrices in tiles that stay in registers, with the bits of libtorch's libraries.
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe {

// Whether a product of this size is multiplied in tiles: [.., M, K] @ [.., K, N], float32, shapes that fit each other.
bool multiplies_in_tiles(const at::Tensor& a, const at::Tensor& b);

// out = bias + a @ b: a [M,K], b [K,N], bias what expands to [M,N] or undefined; all float32, for which `multiplies_in_tiles`. `out` [M,N] is
// contiguous, in memory of its own.
void multiply_in_tiles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const at::Tensor& out);

// One product a batch: a [G,M,K], b [G,K,N] → [G,M,N].
at::Tensor multiply_batches_in_tiles(const at::Tensor& a, const at::Tensor& b);

}  // namespace troupe
