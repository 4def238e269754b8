// Makes results of a product from its sums in float32, a row of 32 columns at a time. For processors with AVX512-BF16; elsewhere they
// only compile.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/programs/tile_products.h"
#include "kernels/cpu/add_range.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/round_numbers.h"
#include "kernels/cpu/row_rules.h"

namespace troupe {

constexpr int64_t kHalfWidth = kRounded / 2;

// Where the sums of a block lie: `row` from one to the next, `lower` more behind each 16, and `right` to a row's second half.
struct BlockSums {
  const float* first;
  int64_t row, lower, right;
};

// A block's sums, and where its results go: pointers to its first element, null for none.
struct BlockEnds {
  BlockSums sums;
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

TROUPE_INLINE void load_sums(const BlockSums& sums, int64_t row, float* made) {
  const float* const from = sums.first + row * sums.row + row / kHalfWidth * sums.lower;
  std::memcpy(made, from, kHalfWidth * sizeof(float));
  std::memcpy(made + kHalfWidth, from + sums.right, kHalfWidth * sizeof(float));
}

// Numbers of another matrix, with zeros beyond the edge.
TROUPE_INLINE void load_others(const at::BFloat16* from, int64_t columns, float* to) {
  at::BFloat16 numbers[kRounded] = {};
  if (columns == kRounded) std::memcpy(numbers, from, sizeof(numbers));
  else std::memcpy(numbers, from, static_cast<size_t>(columns) * sizeof(at::BFloat16));
  for (int64_t i = 0; i < kRounded; i++) to[i] = load(numbers, i);
}

TROUPE_AVX512_BF16 inline void round_to(at::BFloat16* to, const float* made, int64_t columns, bool streams) {
  if (columns == kRounded) return round_numbers(made, to, streams);
  at::BFloat16 rounded[kRounded];
  round_numbers(made, rounded, false);
  std::memcpy(to, rounded, static_cast<size_t>(columns) * sizeof(at::BFloat16));
}

// Without an epilogue.
TROUPE_AVX512_BF16 inline void round_row(const void* block, int64_t row) {
  const BlockEnds& ends = *static_cast<const BlockEnds*>(block);
  float made[kRounded];
  load_sums(ends.sums, row, made);
  round_to(ends.out + row * ends.out_stride, made, ends.columns, ends.streams);
}

// To a result of float32.
TROUPE_AVX512_BF16 inline void add_row(const void* block, int64_t row) {
  const BlockEnds& ends = *static_cast<const BlockEnds*>(block);
  float made[kRounded];
  load_sums(ends.sums, row, made);
  float* const to = ends.added + row * ends.out_stride;
  __builtin_prefetch(to + ends.ahead, 1, 3);
  __builtin_prefetch(to + ends.ahead + kHalfWidth, 1, 3);
  if (ends.columns == kRounded) {
    for (int64_t i = 0; i < kRounded; i++) to[i] += made[i];
  } else {
    for (int64_t i = 0; i < ends.columns; i++) to[i] += made[i];
  }
}

template <class Gelu, bool activates>
TROUPE_AVX512_BF16 void end_row(const void* block, int64_t row) {
  const BlockEnds& ends = *static_cast<const BlockEnds*>(block);
  const int64_t at = row * ends.stride;
  float made[kRounded], others[kRounded];
  load_sums(ends.sums, row, made);
  if (ends.product) round_to(ends.product + at, made, ends.columns, ends.streams);
  if (ends.activated) {
    __builtin_prefetch(ends.activated + at + ends.ahead, 0, 3);
    load_others(ends.activated + at, ends.columns, others);
    for (int64_t i = 0; i < kRounded; i++) made[i] *= Gelu::slope(others[i] + ends.bias[i]);
  } else if (ends.bias) {
    for (int64_t i = 0; i < kRounded; i++) made[i] += ends.bias[i];
  }
  if constexpr (activates) {
    for (int64_t i = 0; i < kRounded; i++) made[i] = Gelu::value(made[i]);
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
    for (int64_t i = 0; i < kRounded; i++) made[i] += others[i];
  }
  round_to(ends.out + row * ends.out_stride, made, ends.columns, ends.streams);
  if (ends.column_sums) {
    for (int64_t i = 0; i < kRounded; i++) ends.column_sums[i] = (row > 0 ? ends.column_sums[i] : 0.0f) + made[i];
  }
}

// The ends of all blocks of a product, `height` rows each.
class ProductEnds {
 public:
  // `out` and the epilogue are those of `multiply_tiles`, and stay the caller's.
  ProductEnds(const at::Tensor& out, int64_t rows, int64_t columns, int64_t height, const TileEpilogue& epilogue)
      : epilogue_(epilogue),
        out_(out.scalar_type() == at::kBFloat16 ? out.mutable_data_ptr<at::BFloat16>() : nullptr),
        added_(out_ == nullptr ? out.mutable_data_ptr<float>() : nullptr),
        rows_(rows),
        columns_(columns),
        padded_columns_((columns + kRounded - 1) / kRounded * kRounded),
        height_(height),
        out_stride_(out.dim() == 2 ? out.stride(0) : columns),
        fits_streams_(static_cast<int64_t>(out.nbytes()) >= kStreamedBytes && out_stride_ % kRounded == 0 && begins_line(out) &&
                      (!epilogue.product.defined() || (columns % kRounded == 0 && begins_line(epilogue.product)))) {
    if (epilogue.bias.defined()) {
      bias_ = at::zeros({padded_columns_}, at::TensorOptions(at::kFloat));
      bias_.narrow(0, 0, columns).copy_(epilogue.bias);
    }
    if (epilogue.dropout) {
      const TileDropout& dropout = *epilogue.dropout;
      dropout_ = DropoutMask::of(dropout.p, dropout.seed, dropout.stream).at(static_cast<uint64_t>(dropout.offset));
    }
    if (epilogue.column_sums.defined()) sums_ = at::empty({num_bands(), padded_columns_}, at::TensorOptions(at::kFloat));
  }

  // Whether results are so many that they had better go past the cache, and begin with lines of it.
  bool fits_streams() const { return fits_streams_; }

  // Ends a row of a block, which comes as an address.
  void (*row_end() const)(const void* block, int64_t row) {
    if (added_) return add_row;
    const bool is_exact = epilogue_.gelu == GeluForm::exact;
    if (epilogue_.gelu && !epilogue_.activated.defined()) return is_exact ? end_row<ExactGelu, true> : end_row<TanhGelu, true>;
    const bool rounds = !bias_.defined() && !dropout_ && !epilogue_.product.defined() && !epilogue_.activated.defined() &&
                        !epilogue_.residual.defined() && !sums_.defined();
    if (rounds) return round_row;
    return is_exact ? end_row<ExactGelu, false> : end_row<TanhGelu, false>;
  }

  BlockEnds of(const BlockSums& sums, int64_t row, int64_t column) const {
    const int64_t at = row * columns_ + column;
    const auto place = [at](const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<at::BFloat16>() + at : nullptr; };
    BlockEnds ends{};
    ends.sums = sums;
    ends.out = out_ ? out_ + row * out_stride_ + column : nullptr;
    ends.added = added_ ? added_ + row * out_stride_ + column : nullptr;
    ends.product = const_cast<at::BFloat16*>(place(epilogue_.product));
    ends.bias = bias_.defined() ? bias_.const_data_ptr<float>() + column : nullptr;
    ends.activated = place(epilogue_.activated);
    ends.residual = place(epilogue_.residual);
    ends.column_sums = sums_.defined() ? sums_.mutable_data_ptr<float>() + row / height_ * padded_columns_ + column : nullptr;
    ends.dropout = dropout_ ? &*dropout_ : nullptr;
    ends.place = at;
    ends.stride = columns_;
    ends.out_stride = out_stride_;
    ends.rows = std::min(height_, rows_ - row);
    ends.columns = std::min(kRounded, columns_ - column);
    return ends;
  }

  // Once all blocks have ended.
  void add_columns() const {
    if (!sums_.defined()) return;
    float* const total = epilogue_.column_sums.mutable_data_ptr<float>();
    for (int64_t band = 0; band < num_bands(); band++) {
      add_range(total, sums_.const_data_ptr<float>() + band * padded_columns_, columns_, band > 0);
    }
  }

 private:
  static bool begins_line(const at::Tensor& tensor) { return reinterpret_cast<intptr_t>(tensor.const_data_ptr()) % 64 == 0; }

  int64_t num_bands() const { return (rows_ + height_ - 1) / height_; }

  const TileEpilogue& epilogue_;
  at::BFloat16* const out_;
  float* const added_;
  const int64_t rows_, columns_, padded_columns_, height_, out_stride_;
  const bool fits_streams_;
  at::Tensor bias_;  // float32, zeros beyond the edge
  std::optional<DropoutMask> dropout_;
  at::Tensor sums_;  // of each block's height of rows
};

}  // namespace troupe
