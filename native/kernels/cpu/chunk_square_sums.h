// Sums of squares of every 1,024 elements of a flat buffer, in float64.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"

namespace troupe {

constexpr int64_t kChunk = 1024;
constexpr int kChunkLanes = 32;

// The square of a float is exact in float64, so only the order of the additions matters, and that is the lanes'.
template <class Element>
struct ChunkSquareSums {
  static TROUPE_INLINE void run(const Element* __restrict from, double* __restrict sums, int64_t numel,
                                int64_t first_chunk, int64_t last_chunk) {
    for (int64_t chunk = first_chunk; chunk < last_chunk; chunk++) {
      const int64_t end = std::min(numel, (chunk + 1) * kChunk);
      sums[chunk] = sum_terms<double, kChunkLanes>(chunk * kChunk, end, [&](int64_t i) TROUPE_INLINE_LAMBDA {
        const double value = load(from, i);
        return value * value;
      });
    }
  }
};

}  // namespace troupe
