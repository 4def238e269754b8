// Which elements a dropout leaves out: element i takes word `offset` + i of a Philox row, and is left out where that is below a
// threshold. Nothing is kept for backward or recomputation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/cpu/philox.h"

namespace troupe {

// The places of a piece's elements in the complete tensor: element i at place offset + i / run * stride + i mod run.
struct DropoutPlaces {
  int64_t offset;
  int64_t run;
  int64_t stride;

  uint64_t of(int64_t element) const { return static_cast<uint64_t>(offset + element / run * stride + element % run); }
};

struct DropoutMask {
  PhiloxRow row;
  uint64_t offset;
  uint64_t threshold;  // words below it are dropped; p = 1 drops all 2^32
  float scale;         // of those that stay

  static DropoutMask of(double p, int64_t seed, int64_t stream) {
    const auto threshold = static_cast<uint64_t>(p * 0x1p32);
    const float scale = p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f;
    return {{static_cast<uint64_t>(seed), static_cast<uint64_t>(stream)}, 0, threshold, scale};
  }

  DropoutMask at(uint64_t place) const { return {row, place, threshold, scale}; }
};

// Calls visit(index, dropped) for elements begin to end - 1.
template <class Visit>
TROUPE_INLINE void each_dropped(DropoutMask mask, int64_t begin, int64_t end, const Visit& visit) {
  // Words are compared as one less, so that the threshold 2^32 fits: w < t is w <= t - 1, and t = 0 drops nothing.
  const bool any = mask.threshold > 0;
  const auto last_dropped = static_cast<uint32_t>(mask.threshold - 1);
  philox_each(mask.row, mask.offset, begin, end, [&](const uint32_t* words, int64_t skip, int64_t index,
                                                     int64_t count) TROUPE_INLINE_LAMBDA {
    for (int64_t j = 0; j < count; j++) visit(index + j, any & (words[skip + j] <= last_dropped));
  });
}

inline void check_dropout(const char* op, double p, DropoutPlaces places) {
  TORCH_CHECK(p >= 0 && p <= 1, "[", op, "] expected p to be a probability, 0 to 1, got ", p);
  TORCH_CHECK(places.offset >= 0 && places.run >= 1 && places.stride >= 0,
              "[", op, "] expected offset and stride not to be negative and run to be at least 1, got ", places.offset, ", ",
              places.stride, ", ", places.run);
}

}  // namespace troupe
