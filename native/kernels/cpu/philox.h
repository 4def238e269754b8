// Philox4x32-10, a counter-based generator: random words are a pure function of (seed, stream, index).
// Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

// Names an endless row of random words. `seed` is the key; `stream` is the upper half of the counter, so that streams of
// one seed never overlap; word number i is word i mod 4 of counter i / 4.
struct PhiloxRow {
  uint64_t seed;
  uint64_t stream;
};

constexpr int kPhiloxWide = 16;                   // counters computed side by side
constexpr int kPhiloxWords = 4 * kPhiloxWide;     // words that they give

// The words 4 * first_counter to 4 * first_counter + 63. A lane has 64 bits of which the lower half counts, since each product needs
// both: half as long under AVX-512 as lanes of 32 bits that are widened.
TROUPE_INLINE void philox_block(PhiloxRow row, uint64_t first_counter, uint32_t (&words)[kPhiloxWords]) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u, kLower = 0xFFFFFFFFu;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int k = 0; k < kPhiloxWide; k++) {
    const uint64_t counter = first_counter + static_cast<uint64_t>(k);
    uint64_t c0 = counter, c1 = counter >> 32, c2 = row.stream, c3 = row.stream >> 32;
    auto key0 = static_cast<uint32_t>(row.seed), key1 = static_cast<uint32_t>(row.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
      const uint64_t product0 = kMultiplier0 * (c0 & kLower);
      const uint64_t product1 = kMultiplier1 * (c2 & kLower);
      c0 = (product1 >> 32) ^ c1 ^ key0;
      c1 = product1;
      c2 = (product0 >> 32) ^ c3 ^ key1;
      c3 = product0;
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
    words[4 * k] = static_cast<uint32_t>(c0);
    words[4 * k + 1] = static_cast<uint32_t>(c1);
    words[4 * k + 2] = static_cast<uint32_t>(c2);
    words[4 * k + 3] = static_cast<uint32_t>(c3);
  }
}

// Calls visit(words, skip, index, count) for pieces that cover elements [begin, end) of a tensor whose element 0 takes word
// `offset`: words[skip + j] belongs to element index + j, for j < count. Pieces end at complete blocks of words, so an
// element's word does not depend on how the tensor is split.
template <class Visit>
TROUPE_INLINE void philox_each(PhiloxRow row, uint64_t offset, int64_t begin, int64_t end, const Visit& visit) {
  while (begin < end) {
    const uint64_t position = offset + static_cast<uint64_t>(begin);
    const auto skip = static_cast<int64_t>(position % kPhiloxWords);
    const int64_t count = std::min<int64_t>(kPhiloxWords - skip, end - begin);
    uint32_t words[kPhiloxWords];
    philox_block(row, position / kPhiloxWords * kPhiloxWide, words);
    visit(words, skip, begin, count);
    begin += count;
  }
}

}  // namespace troupe
