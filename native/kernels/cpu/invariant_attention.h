// Attention whose queries do not depend on each other: each has the bits that it has in pages, whatever is beside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/cpu/attention_sight.h"

namespace troupe {

// Throws where an invariant forward cannot hide keys by `mask`.
void check_invariant_attention(const at::Tensor& mask);

// q [B,H,T,D], k and v [B,G,S,D] of one float dtype, any strides; query t stands beside key t + S - T. `mask` is undefined or bool
// [B or 1, 1, 1, S]: keys that it hides are left out as if they were not there. `bias` is undefined or float32 [B or 1, H or 1, T or 1, S],
// added to the scaled scores. A query that sees nothing gets the mean of all values, and a logsumexp of 0.
Attended attend_invariantly(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                            const at::Tensor& bias, bool causal, int64_t window, float scale);

}  // namespace troupe
