// Attention over tiles: scores, probabilities and their gradients of 64 query rows at a time stay in the cache, in float32 where they are
// sums. For processors that multiply bfloat16 themselves; a choice of the calling thread, since bits are not those of `attention`.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/cpu/attention_sight.h"

namespace troupe {

// Whether the thread wants tiles, and these tensors fit: bfloat16, widths of up to 128 in multiples of 32, up to 1,024 keys.
bool attends_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

Attended attend_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight);

// The gradients of q, k and v, laid out as `projected_heads`. A bias has none.
AttentionGradients attend_in_tiles_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                            const Attended& attended, const Sight& sight);

}  // namespace troupe
