// Numbers of bfloat16 matrices as a product of tiles reads them. For processors with AVX-512; elsewhere they only compile.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/isa.h"

namespace troupe {

using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
constexpr int64_t kWords = 16;

#ifdef __x86_64__
// Eight numbers of each of four rows, side by side. The loads put them into their lanes, and go beside the shuffles that follow.
TROUPE_AVX512 inline __m512i load_rows(const uint16_t* from, int64_t second, int64_t third, int64_t fourth) {
  const auto row = [&](int64_t at) TROUPE_INLINE_LAMBDA { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)); };
  __m512i rows = _mm512_castsi128_si512(row(0));
  rows = _mm512_mask_broadcast_i32x4(rows, 0x00F0, row(second));
  rows = _mm512_mask_broadcast_i32x4(rows, 0x0F00, row(third));
  return _mm512_mask_broadcast_i32x4(rows, 0xF000, row(fourth));
}

// to[column * to_stride + row] = from[row * stride + column], of 16 rows and columns.
TROUPE_AVX512 inline void transpose_square(const uint16_t* from, int64_t stride, uint16_t* to, int64_t to_stride) {
  __m512i rows[8], pairs[8], fours[8];
  for (int64_t i = 0; i < 8; i++) rows[i] = load_rows(from + i * stride, 8 * stride, 8, 8 * stride + 8);
  for (int64_t i = 0; i < 4; i++) {
    pairs[i] = _mm512_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    pairs[i + 4] = _mm512_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  for (int64_t i = 0; i < 8; i += 2) {
    fours[i] = _mm512_unpacklo_epi32(pairs[i], pairs[i + 1]);
    fours[i + 1] = _mm512_unpackhi_epi32(pairs[i], pairs[i + 1]);
  }
  for (int64_t i = 0; i < 8; i++) {  // a column, and the eighth after it
    const __m512i low = fours[i / 4 * 4 + i / 2 % 2], high = fours[i / 4 * 4 + i / 2 % 2 + 2];
    const __m512i columns = i % 2 == 0 ? _mm512_unpacklo_epi64(low, high) : _mm512_unpackhi_epi64(low, high);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * to_stride), _mm512_castsi512_si256(columns));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (i + 8) * to_stride), _mm512_extracti64x4_epi64(columns, 1));
  }
}

// to[pair * to_stride + row] = from[row * stride + 2 * pair] and its neighbour, of 16 rows and four pairs.
TROUPE_AVX512 inline void transpose_pairs(const uint16_t* from, int64_t stride, uint32_t* to, int64_t to_stride) {
  __m512i rows[4];
  for (int64_t i = 0; i < 4; i++) rows[i] = load_rows(from + i * stride, 4 * stride, 8 * stride, 12 * stride);
  const __m512i low = _mm512_unpacklo_epi32(rows[0], rows[1]), next_low = _mm512_unpacklo_epi32(rows[2], rows[3]);
  const __m512i high = _mm512_unpackhi_epi32(rows[0], rows[1]), next_high = _mm512_unpackhi_epi32(rows[2], rows[3]);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi64(low, next_low));
  _mm512_storeu_si512(to + to_stride, _mm512_unpackhi_epi64(low, next_low));
  _mm512_storeu_si512(to + 2 * to_stride, _mm512_unpacklo_epi64(high, next_high));
  _mm512_storeu_si512(to + 3 * to_stride, _mm512_unpackhi_epi64(high, next_high));
}
#else
inline void transpose_square(const uint16_t* from, int64_t stride, uint16_t* to, int64_t to_stride) {
  for (int64_t i = 0; i < 256; i++) to[i % 16 * to_stride + i / 16] = from[i / 16 * stride + i % 16];
}

inline void transpose_pairs(const uint16_t* from, int64_t stride, uint32_t* to, int64_t to_stride) {
  for (int64_t i = 0; i < 64; i++) std::memcpy(to + i % 4 * to_stride + i / 4, from + i / 4 * stride + i % 4 * 2, sizeof(uint32_t));
}
#endif

// `rows` rows of `count` numbers at an edge, as 16 of 32 with zeros behind.
struct Edge {
  alignas(64) uint16_t numbers[16 * 32] = {};

  Edge(const uint16_t* from, int64_t stride, int64_t rows, int64_t count) {
    for (int64_t row = 0; row < rows; row++) std::copy_n(from + row * stride, count, numbers + row * 32);
  }
};

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
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t inner, int64_t columns, int64_t width, uint32_t* to) {
    for (int64_t k = 0; k < inner; k += 2 * kWords) {
      const int64_t count = std::min(2 * kWords, inner - k);
      for (int64_t first = 0; first < width; first += kWords) {
        const uint16_t* const corner = from + first * stride + k;
        uint32_t* const place = to + k / 2 * width + first;
        if (count == 2 * kWords && first + kWords <= columns) {
          for (int64_t pair = 0; pair < kWords; pair += 4) transpose_pairs(corner + 2 * pair, stride, place + pair * width, width);
          continue;
        }
        const Edge edge(corner, stride, std::clamp<int64_t>(columns - first, 0, kWords), count);
        uint32_t transposed[kWords * kWords];
        for (int64_t pair = 0; pair < kWords; pair += 4) transpose_pairs(edge.numbers + 2 * pair, 2 * kWords, transposed + pair * kWords, kWords);
        for (int64_t pair = 0; pair < (count + 1) / 2; pair++) std::copy_n(transposed + pair * kWords, kWords, place + pair * width);
      }
    }
  }
};

// Rows of a that lies transposed, with an even number of columns: to[row * to_stride + k] = from[k * stride + row], zeros beyond the edges.
struct PackTransposedRows {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t inner, int64_t rows, int64_t to_stride, uint16_t* to) {
    for (int64_t row = 0; row < rows; row += kWords) {
      const int64_t here = std::min(kWords, rows - row);
      for (int64_t k = 0; k < inner; k += kWords) {
        const int64_t count = std::min(kWords, inner - k);
        const uint16_t* const corner = from + k * stride + row;
        uint16_t* const place = to + row * to_stride + k;
        if (here == kWords && count == kWords) {
          transpose_square(corner, stride, place, to_stride);
          continue;
        }
        const Edge edge(corner, stride, count, here);
        uint16_t transposed[kWords * kWords];
        transpose_square(edge.numbers, 2 * kWords, transposed, kWords);
        for (int64_t i = 0; i < here; i++) std::copy_n(transposed + i * kWords, count + count % 2, place + i * to_stride);
      }
    }
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
