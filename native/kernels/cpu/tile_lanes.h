// Numbers of a product's tile, side by side in one or two registers. A local array of them stays there.
#pragma once

#include <cstring>

#include "kernels/cpu/isa.h"

namespace troupe {

constexpr int kTileLanes = 16;
using TileLanes = float __attribute__((vector_size(4 * kTileLanes)));

TROUPE_INLINE void load_lanes(TileLanes& to, const float* from) { std::memcpy(&to, from, sizeof(to)); }
TROUPE_INLINE void store_lanes(float* to, const TileLanes& from) { std::memcpy(to, &from, sizeof(from)); }

// sum += a * b, rounded once.
TROUPE_INLINE void add_product(TileLanes& sum, float a, const TileLanes& b) {
  for (int i = 0; i < kTileLanes; i++) sum[i] = __builtin_fmaf(a, b[i], sum[i]);
}

}  // namespace troupe
