// Makes results of a block of 32 x 32 sums, a row at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/amx_panels.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/round_numbers.h"

namespace troupe {

constexpr int64_t kTileSums = kTileHeight * kTileHeight;  // of one tile; a block has two by two, one behind the other
constexpr int64_t kBlockSums = 4 * kTileSums;

// A block's sums, and where its results go: pointers to its first element, null for none.
struct BlockEnds {
  const float* sums;
  at::BFloat16* out;
  float* added;
  at::BFloat16* product;
  const float* bias;
  const at::BFloat16* activated;
  const at::BFloat16* residual;
  float* column_sums;
  const DropoutMask* dropout;
  int64_t place;  // of the first element in the complete result
  int64_t ahead;  // from there to the next block's
  int64_t stride, out_stride, rows, columns;
  bool streams;   // results go past the cache
};

TROUPE_INLINE void load_sums(const float* sums, int64_t row, float* made) {
  const float* const from = sums + row / kTileHeight * 2 * kTileSums + row % kTileHeight * kTileHeight;
  std::memcpy(made, from, kTileHeight * sizeof(float));
  std::memcpy(made + kTileHeight, from + kTileSums, kTileHeight * sizeof(float));
}

// Numbers of another matrix, with zeros beyond the edge.
TROUPE_INLINE void load_others(const at::BFloat16* from, int64_t columns, float* to) {
  at::BFloat16 numbers[kPanelWidth] = {};
  if (columns == kPanelWidth) std::memcpy(numbers, from, sizeof(numbers));
  else std::memcpy(numbers, from, static_cast<size_t>(columns) * sizeof(at::BFloat16));
  for (int64_t i = 0; i < kPanelWidth; i++) to[i] = load(numbers, i);
}

TROUPE_AVX512_BF16 inline void round_to(at::BFloat16* to, const float* made, int64_t columns, bool streams) {
  if (columns == kPanelWidth) return round_numbers(made, to, streams);
  at::BFloat16 rounded[kPanelWidth];
  round_numbers(made, rounded, false);
  std::memcpy(to, rounded, static_cast<size_t>(columns) * sizeof(at::BFloat16));
}

// Without an epilogue.
TROUPE_AVX512_BF16 inline void round_row(const void* block, int64_t row) {
  const BlockEnds& ends = *static_cast<const BlockEnds*>(block);
  float made[kPanelWidth];
  load_sums(ends.sums, row, made);
  round_to(ends.out + row * ends.out_stride, made, ends.columns, ends.streams);
}

// To a result of float32.
TROUPE_AVX512_BF16 inline void add_row(const void* block, int64_t row) {
  const BlockEnds& ends = *static_cast<const BlockEnds*>(block);
  float made[kPanelWidth];
  load_sums(ends.sums, row, made);
  float* const to = ends.added + row * ends.out_stride;
  if (ends.columns == kPanelWidth) {
    for (int64_t i = 0; i < kPanelWidth; i++) to[i] += made[i];
  } else {
    for (int64_t i = 0; i < ends.columns; i++) to[i] += made[i];
  }
}

template <class Gelu, bool activates>
TROUPE_AVX512_BF16 void end_row(const void* block, int64_t row) {
  const BlockEnds& ends = *static_cast<const BlockEnds*>(block);
  const int64_t at = row * ends.stride;
  float made[kPanelWidth], others[kPanelWidth];
  load_sums(ends.sums, row, made);
  if (ends.product) round_to(ends.product + at, made, ends.columns, ends.streams);
  if (ends.activated) {
    __builtin_prefetch(ends.activated + at + ends.ahead, 0, 3);
    load_others(ends.activated + at, ends.columns, others);
    for (int64_t i = 0; i < kPanelWidth; i++) made[i] *= Gelu::slope(others[i] + ends.bias[i]);
  } else if (ends.bias) {
    for (int64_t i = 0; i < kPanelWidth; i++) made[i] += ends.bias[i];
  }
  if constexpr (activates) {
    for (int64_t i = 0; i < kPanelWidth; i++) made[i] = Gelu::value(made[i]);
  }
  if (ends.dropout) {
    const int64_t first = ends.place + at;
    each_dropped(*ends.dropout, first, first + ends.columns, [&](int64_t index, bool dropped) TROUPE_INLINE_LAMBDA {
      const float kept = made[index - first] * ends.dropout->scale;
      made[index - first] = dropped ? 0.0f : kept;
    });
  }
  if (ends.residual) {
    __builtin_prefetch(ends.residual + at + ends.ahead, 0, 3);
    load_others(ends.residual + at, ends.columns, others);
    for (int64_t i = 0; i < kPanelWidth; i++) made[i] += others[i];
  }
  round_to(ends.out + row * ends.out_stride, made, ends.columns, ends.streams);
  if (ends.column_sums) {
    for (int64_t i = 0; i < kPanelWidth; i++) ends.column_sums[i] = (row > 0 ? ends.column_sums[i] : 0.0f) + made[i];
  }
}

}  // namespace troupe
