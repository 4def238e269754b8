// Philox4x32-10, a counter-based generator: random words are a pure function of (seed, stream, index).
// Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

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

constexpr int kPhiloxRounds = 10;
constexpr uint32_t kPhiloxMultipliers[] = {0xD2511F53u, 0xCD9E8D57u};
constexpr uint32_t kPhiloxWeyls[] = {0x9E3779B9u, 0xBB67AE85u};

// The words 4 * first_counter to 4 * first_counter + 63.
TROUPE_INLINE void philox_block(PhiloxRow row, uint64_t first_counter, uint32_t (&words)[kPhiloxWords]) {
  for (int k = 0; k < kPhiloxWide; k++) {
    const uint64_t counter = first_counter + static_cast<uint64_t>(k);
    // Lanes of 64 bits of which the lower half counts, since each product needs both.
    constexpr uint64_t kLower = 0xFFFFFFFFu;
    uint64_t c0 = counter, c1 = counter >> 32, c2 = row.stream, c3 = row.stream >> 32;
    auto key0 = static_cast<uint32_t>(row.seed), key1 = static_cast<uint32_t>(row.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; round++) {
      const uint64_t product0 = kPhiloxMultipliers[0] * (c0 & kLower);
      const uint64_t product1 = kPhiloxMultipliers[1] * (c2 & kLower);
      c0 = (product1 >> 32) ^ c1 ^ key0;
      c1 = product1;
      c2 = (product0 >> 32) ^ c3 ^ key1;
      c3 = product0;
      key0 += kPhiloxWeyls[0];
      key1 += kPhiloxWeyls[1];
    }
    words[4 * k] = static_cast<uint32_t>(c0);
    words[4 * k + 1] = static_cast<uint32_t>(c1);
    words[4 * k + 2] = static_cast<uint32_t>(c2);
    words[4 * k + 3] = static_cast<uint32_t>(c3);
  }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define TROUPE_HAS_PHILOX_LANES
using Lanes4 = uint64_t __attribute__((vector_size(32)));
using Lanes8 = uint64_t __attribute__((vector_size(64)));

// The same in lanes of a register, by the instruction that multiplies their lower halves. GCC makes products of complete lanes of the loops
// above: three operations each.
template <class Lanes>
struct PhiloxLanes {
  static constexpr int kLanes = sizeof(Lanes) / sizeof(uint64_t);

  static TROUPE_INLINE void run(PhiloxRow row, uint64_t first_counter, uint32_t* words) {
    constexpr int kTogether = 2;  // registers, whose chains of ten rounds go side by side
    const Lanes none = {};
    const Lanes stream = none + row.stream;
    Lanes places;
    for (int lane = 0; lane < kLanes; lane++) places[lane] = static_cast<uint64_t>(lane);
    for (int first = 0; first < kPhiloxWide; first += kTogether * kLanes) {
      Lanes c0[kTogether], c1[kTogether], c2[kTogether], c3[kTogether];
      for (int i = 0; i < kTogether; i++) {
        c0[i] = places + (first_counter + static_cast<uint64_t>(first + i * kLanes));
        c1[i] = c0[i] >> 32;
        c2[i] = stream;
        c3[i] = stream >> 32;
      }
      auto key0 = static_cast<uint32_t>(row.seed), key1 = static_cast<uint32_t>(row.seed >> 32);
#pragma GCC unroll 10
      for (int round = 0; round < kPhiloxRounds; round++) {
        for (int i = 0; i < kTogether; i++) {
          Lanes product0, product1;
          multiply_lower(product0, c0[i], none + kPhiloxMultipliers[0]);
          multiply_lower(product1, c2[i], none + kPhiloxMultipliers[1]);
          c0[i] = (product1 >> 32) ^ c1[i] ^ (none + key0);
          c1[i] = product1;
          c2[i] = (product0 >> 32) ^ c3[i] ^ (none + key1);
          c3[i] = product0;
        }
        key0 += kPhiloxWeyls[0];
        key1 += kPhiloxWeyls[1];
      }
      for (int i = 0; i < kTogether; i++) store(c0[i], c1[i], c2[i], c3[i], words + 4 * (first + i * kLanes));
    }
  }

 private:
  static TROUPE_INLINE void multiply_lower(Lanes& product, const Lanes& a, const Lanes& b) {
    __asm__("vpmuludq %2, %1, %0" : "=v"(product) : "v"(a), "v"(b));
  }

  // Four words of each lane, which are two numbers of 64 bits.
  static TROUPE_INLINE void store(const Lanes& c0, const Lanes& c1, const Lanes& c2, const Lanes& c3, uint32_t* words) {
    constexpr uint64_t kLower = 0xFFFFFFFFu;
    const Lanes low = (c0 & kLower) | c1 << 32, high = (c2 & kLower) | c3 << 32;
    Lanes front, back;
    for (int lane = 0; lane < kLanes; lane++) {
      front[lane] = static_cast<uint64_t>(lane / 2 + lane % 2 * kLanes);
      back[lane] = front[lane] + kLanes / 2;
    }
    const Lanes first = __builtin_shuffle(low, high, front), second = __builtin_shuffle(low, high, back);
    std::memcpy(words, &first, sizeof(Lanes));
    std::memcpy(words + 2 * kLanes, &second, sizeof(Lanes));
  }
};
#endif

// By the quickest way of this machine.
TROUPE_INLINE void philox_words(PhiloxRow row, uint64_t first_counter, uint32_t (&words)[kPhiloxWords]) {
#ifdef TROUPE_HAS_PHILOX_LANES
  if (isa() >= Isa::avx512) return detail::run_avx512<PhiloxLanes<Lanes8>>(row, first_counter, &words[0]);
  if (isa() == Isa::avx2) return detail::run_avx2<PhiloxLanes<Lanes4>>(row, first_counter, &words[0]);
#endif
  philox_block(row, first_counter, words);
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
    philox_words(row, position / kPhiloxWords * kPhiloxWide, words);
    visit(words, skip, begin, count);
    begin += count;
  }
}

}  // namespace troupe
