// Numbers of a product's tile, side by side in a register. A local array of them stays there.
#pragma once

#include <cstring>

#include "kernels/cpu/isa.h"

namespace troupe {

template <int kLanes>
struct TileRegister {
  typedef float Lanes __attribute__((vector_size(4 * kLanes)));
};

// 16 with AVX-512, 8 without: of a vector that takes two registers the compiler keeps sums in memory.
template <int kLanes>
using TileLanes = typename TileRegister<kLanes>::Lanes;

template <class Lanes>
TROUPE_INLINE void load_lanes(Lanes& to, const float* from) { std::memcpy(&to, from, sizeof(to)); }
template <class Lanes>
TROUPE_INLINE void store_lanes(float* to, const Lanes& from) { std::memcpy(to, &from, sizeof(from)); }

// sum += a * b, rounded once.
template <class Lanes>
TROUPE_INLINE void add_product(Lanes& sum, float a, const Lanes& b) {
  for (size_t i = 0; i < sizeof(Lanes) / sizeof(float); i++) sum[i] = __builtin_fmaf(a, b[i], sum[i]);
}

}  // namespace troupe
