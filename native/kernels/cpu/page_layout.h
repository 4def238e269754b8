// How keys and values lie in pages, and the order of the sums over them: the processor and a GPU share it, and so give the same bits.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

constexpr int kPagePositions = 8;
constexpr int kKeyLanes = 32;
constexpr int kFeatureSums = 4;  // of one score, feature d in sum d mod 4: one alone waits for itself

// The place of a position in its text's pages, counted from the first. A text that shares its first `shared` positions goes on in a page
// of its own, so that nobody copies the last of theirs; 0 where pages are full.
TROUPE_INLINE int64_t place_in_pages(int64_t position, int64_t shared) {
  return position < shared ? position : position + (kPagePositions - shared % kPagePositions) % kPagePositions;
}

}  // namespace troupe
