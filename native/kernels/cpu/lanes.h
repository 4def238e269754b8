// Sums whose order does not depend on the instruction set: term i goes to lane i mod N, lanes are joined pairwise.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

// Joins a vector's worth of lanes, halving it. The width is a constant: a loop over widths would go through memory.
template <int N, class T, class Join>
TROUPE_INLINE T join_lanes(T* lanes, const Join& join) {
  if constexpr (N > 1) {
    for (int lane = 0; lane < N / 2; lane++) lanes[lane] = join(lanes[lane], lanes[lane + N / 2]);
    return join_lanes<N / 2>(lanes, join);
  } else {
    return lanes[0];
  }
}

// Fewer than N terms that are left over, term i to lane i - first: by halves, quarters, ... rather than one by one.
template <int N, class T, class Term, class Join>
TROUPE_INLINE void take_rest(T* lanes, int64_t first, int64_t last, const Term& term, const Join& join) {
  if constexpr (N > 1) {
    constexpr int kHalf = N / 2;
    if (last - first >= kHalf) {
      for (int lane = 0; lane < kHalf; lane++) lanes[lane] = join(lanes[lane], term(first + lane));
      lanes += kHalf;
      first += kHalf;
    }
    take_rest<kHalf>(lanes, first, last, term, join);  // one call: two would double the code at each halving
  }
}

template <int N, class T, class Term, class Join>
TROUPE_INLINE T fold_lanes(T (&lanes)[N], int64_t first, int64_t last, const Term& term, const Join& join) {
  int64_t i = first;
  for (; i + N <= last; i += N) {
    for (int lane = 0; lane < N; lane++) lanes[lane] = join(lanes[lane], term(i + lane));
  }
  take_rest<N>(lanes, i, last, term, join);
  return join_lanes<N>(lanes, join);
}

// The compiler keeps such an array in vector registers, one or many according to the instruction set.
template <class T, int N>
TROUPE_INLINE T sum_lanes(T (&lanes)[N]) {
  return join_lanes<N>(lanes, [](T a, T b) TROUPE_INLINE_LAMBDA { return a + b; });
}

// term(first) + ... + term(last - 1), in N lanes.
template <class T, int N, class Term>
TROUPE_INLINE T sum_terms(int64_t first, int64_t last, const Term& term) {
  T lanes[N] = {};
  return fold_lanes(lanes, first, last, term, [](T a, T b) TROUPE_INLINE_LAMBDA { return a + b; });
}

// The largest value(i), or `lowest` when there is none above it; NaN is passed over.
template <int N, class Value>
TROUPE_INLINE float max_of(int64_t first, int64_t last, float lowest, const Value& value) {
  float lanes[N];
  for (float& lane : lanes) lane = lowest;
  return fold_lanes(lanes, first, last, value, [](float a, float b) TROUPE_INLINE_LAMBDA { return b > a ? b : a; });
}

}  // namespace troupe
