// Sums whose order does not depend on the instruction set: element i goes to lane i mod N, lanes are joined pairwise.
#pragma once

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

template <class T, int N>
TROUPE_INLINE T max_lanes(T (&lanes)[N]) {
  for (int width = N / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; lane++) {
      lanes[lane] = lanes[lane] < lanes[lane + width] ? lanes[lane + width] : lanes[lane];
    }
  }
  return lanes[0];
}

}  // namespace troupe
