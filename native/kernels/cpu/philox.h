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

// Ten rounds of counters c, one a lane; the lower half of each 64 bits counts. `multiply(product, a, b)` multiplies the lower halves.
template <class Lanes, class Multiply>
TROUPE_INLINE void philox_rounds(uint64_t seed, Lanes (&c)[4], const Multiply& multiply) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; round++) {
    Lanes product0, product1;
    multiply(product0, c[0], uint64_t{0xD2511F53u});
    multiply(product1, c[2], uint64_t{0xCD9E8D57u});
    c[0] = (product1 >> 32) ^ c[1] ^ key0;
    c[1] = product1;
    c[2] = (product0 >> 32) ^ c[3] ^ key1;
    c[3] = product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// The words 4 * first_counter to 4 * first_counter + 63.
TROUPE_INLINE void philox_block(PhiloxRow row, uint64_t first_counter, uint32_t (&words)[kPhiloxWords]) {
  constexpr uint64_t kLower = 0xFFFFFFFFu;
  for (int k = 0; k < kPhiloxWide; k++) {
    const uint64_t counter = first_counter + static_cast<uint64_t>(k);
    uint64_t c[4] = {counter, counter >> 32, row.stream, row.stream >> 32};
    philox_rounds(row.seed, c, [](uint64_t& product, uint64_t a, uint64_t b) TROUPE_INLINE_LAMBDA { product = (a & kLower) * b; });
    for (int i = 0; i < 4; i++) words[4 * k + i] = static_cast<uint32_t>(c[i]);
  }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define TROUPE_HAS_PHILOX_LANES
using Lanes4 = uint64_t __attribute__((vector_size(32)));
using Lanes8 = uint64_t __attribute__((vector_size(64)));

// The same in lanes of a register, by the instruction that multiplies their lower halves. GCC makes products of complete lanes of the loop
// above: three operations each.
template <class Lanes>
struct PhiloxLanes {
  static constexpr int kLanes = sizeof(Lanes) / sizeof(uint64_t);

  static TROUPE_INLINE void run(PhiloxRow row, uint64_t first_counter, uint32_t* words) {
    Lanes places;
    for (int lane = 0; lane < kLanes; lane++) places[lane] = static_cast<uint64_t>(lane);
#pragma GCC unroll 4
    for (int first = 0; first < kPhiloxWide; first += kLanes) {
      const Lanes counters = places + (first_counter + static_cast<uint64_t>(first)), stream = Lanes{} + row.stream;
      Lanes c[4] = {counters, counters >> 32, stream, stream >> 32};
      philox_rounds(row.seed, c, [](Lanes& product, const Lanes& a, uint64_t b) TROUPE_INLINE_LAMBDA {
        const Lanes all = Lanes{} + b;
        __asm__("vpmuludq %2, %1, %0" : "=v"(product) : "v"(a), "v"(all));
      });
      store(c, words + 4 * first);
    }
  }

 private:
  // Four words of each lane, which are two numbers of 64 bits.
  static TROUPE_INLINE void store(const Lanes (&c)[4], uint32_t* words) {
    constexpr uint64_t kLower = 0xFFFFFFFFu;
    const Lanes low = (c[0] & kLower) | c[1] << 32, high = (c[2] & kLower) | c[3] << 32;
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
