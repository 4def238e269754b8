// Numbers of bfloat16 matrices as a product of tiles reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/isa.h"

namespace troupe {

using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
constexpr int64_t kWords = 16;

// Swaps the blocks off the diagonal of a square of words, of half its size and less.
template <int kHalf>
TROUPE_INLINE void swap_blocks(Words (&rows)[kWords]) {
  Words upper, lower;
  for (int lane = 0; lane < kWords; lane++) {
    upper[lane] = static_cast<uint32_t>(lane & kHalf ? kWords + lane - kHalf : lane);
    lower[lane] = static_cast<uint32_t>(lane & kHalf ? kWords + lane : lane + kHalf);
  }
#pragma GCC unroll 16
  for (int row = 0; row < kWords; row++) {
    if (row & kHalf) continue;
    const Words one = rows[row], other = rows[row + kHalf];
    rows[row] = __builtin_shuffle(one, other, upper);
    rows[row + kHalf] = __builtin_shuffle(one, other, lower);
  }
  if constexpr (kHalf > 1) swap_blocks<kHalf / 2>(rows);
}

// `first` and `second` [count] as pairs, with zeros behind them; no `second` counts as zeros.
TROUPE_INLINE void set_pairs(Words& pairs, const uint16_t* first, const uint16_t* second, int64_t count) {
  Halves low{}, high{};
  std::memcpy(&low, first, static_cast<size_t>(count) * sizeof(uint16_t));
  if (second) std::memcpy(&high, second, static_cast<size_t>(count) * sizeof(uint16_t));
  pairs = __builtin_convertvector(low, Words) | __builtin_convertvector(high, Words) << 16;
}

// Columns of b as `brgemm` reads them: to[k / 2][column] = (b[k][column], b[k + 1][column]), with zeros beyond the edges, `width` of them
// in a row. from[k * stride + column].
struct PairRows {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t inner, int64_t columns, int64_t width, uint32_t* to) {
    for (int64_t k = 0; k < inner; k += 2) {
      const uint16_t* const first = from + k * stride;
      const uint16_t* const second = k + 1 < inner ? first + stride : nullptr;
      uint32_t* const row = to + k / 2 * width;
      for (int64_t i = 0; i < width; i += kWords) {
        Words pairs{};
        if (i + kWords <= columns && second) set_pairs(pairs, first + i, second + i, kWords);
        else if (i < columns) set_pairs(pairs, first + i, second ? second + i : nullptr, std::min(kWords, columns - i));
        std::memcpy(row + i, &pairs, sizeof(Words));
      }
    }
  }
};

// The same from[column * stride + k].
struct PairColumns {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t inner, int64_t columns, int64_t width,
                                uint32_t* __restrict to) {
    for (int64_t k = 0; k < inner; k += 2 * kWords) {
      const int64_t count = std::min(2 * kWords, inner - k);
      for (int64_t first = 0; first < width; first += kWords) {
        const uint16_t* const corner = from + first * stride + k;
        uint32_t* const place = to + k / 2 * width + first;
        if (count == 2 * kWords && first + kWords <= columns) turn<true>(corner, stride, count, kWords, width, place);
        else turn<false>(corner, stride, count, std::clamp<int64_t>(columns - first, 0, kWords), width, place);
      }
    }
  }

 private:
  // A square that is full stays in registers: its sizes are known.
  template <bool full>
  static TROUPE_INLINE void turn(const uint16_t* from, int64_t stride, int64_t count, int64_t columns, int64_t width,
                                 uint32_t* __restrict to) {
    const int64_t bytes = full ? sizeof(Words) : count * static_cast<int64_t>(sizeof(uint16_t));
    Words square[kWords];
    for (int64_t i = 0; i < kWords; i++) {
      square[i] = Words{};
      if (full || i < columns) std::memcpy(&square[i], from + i * stride, static_cast<size_t>(bytes));
    }
    swap_blocks<8>(square);
    for (int64_t i = 0; i < (full ? kWords : (count + 1) / 2); i++) std::memcpy(to + i * width, &square[i], sizeof(Words));
  }
};

// Rows of a that lies transposed, with an even number of columns: to[row * to_stride + k] = from[k * stride + row], zeros beyond the edges.
struct LayRows {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t inner, int64_t rows, int64_t to_stride,
                                uint16_t* __restrict to) {
    for (int64_t row = 0; row < rows; row += kWords) {
      const int64_t here = std::min(kWords, rows - row);
      for (int64_t k = 0; k < inner; k += 2 * kWords) {
        const int64_t count = std::min(2 * kWords, inner - k);
        const uint16_t* const corner = from + k * stride + row;
        uint16_t* const place = to + row * to_stride + k;
        if (here == kWords && count == 2 * kWords) turn<true>(corner, stride, count, here, to_stride, place);
        else turn<false>(corner, stride, count, here, to_stride, place);
      }
    }
  }

 private:
  template <bool full>
  static TROUPE_INLINE void turn(const uint16_t* from, int64_t stride, int64_t count, int64_t rows, int64_t to_stride,
                                 uint16_t* __restrict to) {
    Words square[kWords];
    for (int64_t i = 0; i < kWords; i++) {
      const uint16_t* const first = from + 2 * i * stride;
      square[i] = Words{};
      if (full) set_pairs(square[i], first, first + stride, kWords);
      else if (2 * i < count) set_pairs(square[i], first, 2 * i + 1 < count ? first + stride : nullptr, rows);
    }
    swap_blocks<8>(square);
    const auto bytes = full ? sizeof(Words) : static_cast<size_t>(count + count % 2) * sizeof(uint16_t);
    for (int64_t i = 0; i < (full ? kWords : rows); i++) std::memcpy(to + i * to_stride, &square[i], bytes);
  }
};

// Scratch of a thread, not cleared: one for each type of numbers and each `Owner`.
template <class T, class Owner = T>
T* scratch(size_t count) {
  thread_local std::vector<T> kept;
  if (kept.size() < count) kept.resize(count);
  return kept.data();
}

}  // namespace troupe
