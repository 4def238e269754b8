// Sums whose order does not depend on the instruction set: term i goes to lane i mod N, lanes are joined pairwise.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

// The compiler keeps such an array in vector registers, one or many according to the instruction set.
template <class T, int N>
TROUPE_INLINE T sum_lanes(T (&lanes)[N]) {
  for (int width = N / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// term(first) + ... + term(last - 1), in N lanes.
template <class T, int N, class Term>
TROUPE_INLINE T sum_terms(int64_t first, int64_t last, const Term& term) {
  T lanes[N] = {};
  int64_t i = first;
  for (; i + N <= last; i += N) {
    for (int lane = 0; lane < N; lane++) lanes[lane] += term(i + lane);
  }
  for (int lane = 0; i < last; i++, lane++) lanes[lane] += term(i);
  return sum_lanes(lanes);
}

// The largest value(i), or `lowest` when there is none above it; NaN is passed over.
template <int N, class Value>
TROUPE_INLINE float max_of(int64_t first, int64_t last, float lowest, const Value& value) {
  float lanes[N];
  for (float& lane : lanes) lane = lowest;
  int64_t i = first;
  for (; i + N <= last; i += N) {
    for (int lane = 0; lane < N; lane++) {
      const float candidate = value(i + lane);
      lanes[lane] = candidate > lanes[lane] ? candidate : lanes[lane];
    }
  }
  for (; i < last; i++) {
    const float candidate = value(i);
    lanes[0] = candidate > lanes[0] ? candidate : lanes[0];
  }
  for (int lane = 1; lane < N; lane++) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
  return lanes[0];
}

}  // namespace troupe
