// Panels of 32 rows or columns as AMX reads them: for each 32 numbers of the inner dim two tiles of 16 rows of 64 bytes, one behind the
// other.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/tile_pairs.h"

namespace troupe {

constexpr int64_t kPanelWidth = 32;
constexpr int64_t kTileHeight = 16;
constexpr int64_t kStep = 32;  // numbers of the inner dim that an instruction multiplies
constexpr int64_t kTileNumel = kTileHeight * kStep;
constexpr int64_t kStepNumel = 2 * kTileNumel;
constexpr int64_t kNearStride = 8192;  // 16 KiB

// Rows of a: to[row][k], zeros beyond the edges. from[row * stride + k].
struct PackRow {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t width, int64_t count, uint16_t* to) {
    for (int64_t row = 0; row < kTileHeight; row++) {
      Words numbers{};
      if (width == kTileHeight && count == kStep) std::memcpy(&numbers, from + row * stride, sizeof(Words));
      else if (row < width) std::memcpy(&numbers, from + row * stride, static_cast<size_t>(count) * sizeof(uint16_t));
      std::memcpy(to + row * kStep, &numbers, sizeof(Words));
    }
  }
};

// The same from[k * stride + row], half a step of both tiles: so it reads complete lines.
struct PackTransposedRows32 {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t width, int64_t count, uint16_t* to) {
    for (int64_t first = 0; first < kPanelWidth; first += kTileHeight, to += kTileNumel) {
      const int64_t rows = std::clamp<int64_t>(width - first, 0, kTileHeight);
      if (rows < kTileHeight || count < kStep / 2) {
        for (int64_t row = 0; row < kTileHeight; row++) std::fill_n(to + row * kStep, kStep / 2, uint16_t{0});
      }
      PackTransposedRows::run(from + first, stride, count, rows, kStep, to);
    }
  }
};

// Columns of b: to[k / 2][column] = (b[k][column], b[k + 1][column]), zeros beyond the edges. from[column * stride + k].
struct PackTransposedColumn {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t width, int64_t count, uint16_t* to) {
    if (count < kStep) std::fill_n(to, kTileNumel, uint16_t{0});
    PairColumns::run(from, stride, count, width, kTileHeight, reinterpret_cast<uint32_t*>(to));
  }
};

// The same from[k * stride + column], half a step of both tiles: so it reads complete lines.
struct PackColumns32 {
  static TROUPE_INLINE void run(const uint16_t* from, int64_t stride, int64_t width, int64_t count, uint16_t* to) {
    using Line = uint16_t __attribute__((vector_size(64)));
    Line left, right;
    for (int lane = 0; lane < kPanelWidth; lane++) {
      left[lane] = static_cast<uint16_t>(lane / 2 + lane % 2 * kPanelWidth);
      right[lane] = static_cast<uint16_t>(kTileHeight + lane / 2 + lane % 2 * kPanelWidth);
    }
    for (int64_t i = 0; i < kTileHeight / 2; i++) {
      const uint16_t* const first = from + 2 * i * stride;
      Line one{}, other{};
      if (width == kPanelWidth && count == kStep / 2) {
        std::memcpy(&one, first, sizeof(Line));
        std::memcpy(&other, first + stride, sizeof(Line));
      } else {
        if (2 * i < count) std::memcpy(&one, first, static_cast<size_t>(width) * sizeof(uint16_t));
        if (2 * i + 1 < count) std::memcpy(&other, first + stride, static_cast<size_t>(width) * sizeof(uint16_t));
      }
      const Line to_left = __builtin_shuffle(one, other, left), to_right = __builtin_shuffle(one, other, right);
      std::memcpy(to + i * kStep, &to_left, sizeof(Line));
      std::memcpy(to + kTileNumel + i * kStep, &to_right, sizeof(Line));
    }
  }
};

// A factor of a product, as panels: rows of the left one, columns of the right one.
class Factor {
 public:
  Factor(const at::Tensor& matrix, bool is_left)
      : data_(reinterpret_cast<const uint16_t*>(matrix.const_data_ptr<at::BFloat16>())),
        stride_(matrix.stride(1) == 1 ? matrix.stride(0) : matrix.stride(1)),
        inner_is_dense_((matrix.stride(1) == 1) == is_left),
        is_left_(is_left),
        size_(matrix.size(is_left ? 0 : 1)),
        inner_(matrix.size(is_left ? 1 : 0)) {}

  int64_t size() const { return size_; }
  int64_t inner() const { return inner_; }
  int64_t num_panels() const { return (size_ + kPanelWidth - 1) / kPanelWidth; }

  bool inner_is_dense() const { return inner_is_dense_; }

  // Whether a panel alone is read well: from rows of its own, or from a line each of rows that are not too far apart.
  bool reads_near() const { return inner_is_dense_ || stride_ <= kNearStride; }

  // Packs half a step from `k` on: one tile where the inner dim is dense, else half of both. `to`: of the step.
  void pack(int64_t panel, int64_t k, int64_t half, uint16_t* to) const {
    const int64_t first = k + (inner_is_dense_ ? 0 : half * kStep / 2), place = panel * kPanelWidth + (inner_is_dense_ ? half * kTileHeight : 0);
    const int64_t width = std::clamp<int64_t>(size_ - place, 0, inner_is_dense_ ? kTileHeight : kPanelWidth);
    const int64_t count = std::clamp<int64_t>(inner_ - first, 0, inner_is_dense_ ? kStep : kStep / 2);
    const bool is_there = width > 0 && count > 0;
    const uint16_t* const from = data_ + (!is_there ? 0 : inner_is_dense_ ? place * stride_ + first : first * stride_ + place);
    const auto by = [&](auto body, int64_t half_numel) {
      detail::run_avx512<decltype(body)>(from, stride_, is_there ? width : 0, is_there ? count : 0, to + half * half_numel);
    };
    if (is_left_ && inner_is_dense_) by(PackRow{}, kTileNumel);
    else if (is_left_) by(PackTransposedRows32{}, kStep / 2);
    else if (inner_is_dense_) by(PackTransposedColumn{}, kTileNumel);
    else by(PackColumns32{}, kTileNumel / 2);
  }

  // Prefetches half of the lines that a step of a panel reads: they lie a row apart, where the processor's own prefetcher finds none. Inline,
  // since the compiler drops calls of a function that does nothing else.
  TROUPE_INLINE void prefetch(int64_t panel, int64_t k, int64_t half) const {
    const int64_t place = panel * kPanelWidth, first = half * kTileHeight;
    const uint16_t* const from = data_ + (inner_is_dense_ ? (place + first) * stride_ + k : (k + first) * stride_ + place);
    for (int64_t line = 0; line < kTileHeight; line++) __builtin_prefetch(from + line * stride_, 0, 2);
  }

 private:
  const uint16_t* const data_;
  const int64_t stride_;  // of the dim with gaps
  const bool inner_is_dense_, is_left_;
  const int64_t size_, inner_;
};

// Some panels of a factor, `steps` steps from `k` on, in pieces of half a step. `to`: one panel behind the other.
struct Panels {
  const Factor* factor;
  int64_t first, count, k, steps;
  uint16_t* to;

  int64_t num_pieces() const { return 2 * count * steps; }

  // In the order in which the matrix has them. Prefetches what follows a row or a panel later.
  static void pack(const void* panels, int64_t piece) {
    const Panels& own = *static_cast<const Panels*>(panels);
    const bool along = own.factor->inner_is_dense() || own.count == 1;
    const int64_t by = along ? 2 * own.steps : own.count, outer = piece / by, inner = piece % by;
    const int64_t panel = along ? outer : inner, half = along ? inner : outer;
    const auto k_of = [&own](int64_t piece_of_panel) { return own.k + piece_of_panel / 2 * kStep; };
    const int64_t next_panel = own.first + panel + (along ? 1 : 0), next_half = half + (along ? 0 : 1);
    if (next_panel < own.factor->num_panels() && k_of(next_half) < own.factor->inner()) {
      own.factor->prefetch(next_panel, k_of(next_half), next_half % 2);
    }
    own.factor->pack(own.first + panel, k_of(half), half % 2, own.to + (panel * own.steps + half / 2) * kStepNumel);
  }
};

}  // namespace troupe
