// Reductions in rank order: ((rank 0 + rank 1) + rank 2) + ..., the same bits whichever thread computes them and however they are divided.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "comm/operation.h"

namespace troupe::comm {

// destinations[*][i] = reduction over r of sources[r][i], for i in [0, numel). float32 inside for bfloat16 and float16, the
// wider integer for integers, rounded once. Destinations may be sources. `max` and `min` pass NaN on.
void reduce_in_rank_order(c10::ScalarType dtype, Reduction reduction, const std::vector<const void*>& sources,
                          const std::vector<void*>& destinations, int64_t numel);

// The same for contiguous tensors of one shape, on any device. Where there is no kernel of ours, with libtorch's operators:
// the same order and widths.
void reduce_tensors(Reduction reduction, const std::vector<at::Tensor>& sources, const at::Tensor& destination);

}  // namespace troupe::comm
