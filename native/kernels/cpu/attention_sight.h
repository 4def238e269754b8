// Which keys the queries of an attention see, and how their scores and weights are changed: a mask, a window, a bias, dropout; and
// what attention gives.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/isa.h"

namespace troupe {

// q [B,H,T,D]; k and v [B,G,S,D], H a multiple of G.
struct AttentionSizes {
  int64_t batches, heads, groups, rows, keys, width;

  AttentionSizes(const at::Tensor& q, const at::Tensor& k)
      : batches(q.size(0)), heads(q.size(1)), groups(k.size(1)), rows(q.size(2)), keys(k.size(2)), width(q.size(3)) {}

  // The heads of a group.
  int64_t readers() const { return heads / groups; }
};

// Dropout of the attention weights [B,H,T,S], as if they were one tensor.
struct WeightDropout {
  DropoutMask mask;
  DropoutPlaces places;
};

// The arguments beside q, k and v. Masks and biases are [B or 1, H or 1, T or 1, S], their last dim without gaps.
struct Sight {
  at::Tensor mask;  // bool; undefined: every key may be seen
  at::Tensor bias;  // float32; undefined: none
  bool causal;
  int64_t window;  // 0: none
  float scale;
  std::optional<WeightDropout> dropout = {};
};

// A row of a mask or bias: the first element of (batch, head, row), dims of size 1 standing for all.
template <class Element>
Element* row_of(const at::Tensor& given, int64_t batch, int64_t head, int64_t row) {
  if (!given.defined()) return nullptr;
  const auto place = [&](int dim, int64_t index) { return given.size(dim) == 1 ? 0 : index * given.stride(dim); };
  return given.data_ptr<Element>() + place(0, batch) + place(1, head) + place(2, row);
}

// Which columns one row of a block may see, and what is added to its scaled scores. A row that sees nothing weighs all of
// its columns alike, so its block must have all keys.
struct RowSight {
  const bool* mask;   // of each column; null: all
  const float* bias;  // of each column; null: none
  int64_t first;      // columns before it are hidden
  int64_t last;       // and those from it on
  bool blind;         // nothing is left; columns `first` to `last - 1` are all then
  std::optional<DropoutMask> dropout;  // of probabilities, from the row's first column on

  // Whether one of columns first to last - 1 is seen by the mask.
  static bool sees_any(const bool* mask, int64_t first, int64_t last) {
    if (mask == nullptr) return first < last;
    for (int64_t i = first; i < last; i++) {
      if (mask[i]) return true;
    }
    return false;
  }
};

// The sight of each row of each head.
struct RowSights {
  const AttentionSizes& sizes;
  const Sight& sight;

  // Keys that a row may see by its place, before any mask.
  int64_t begin(int64_t row) const {
    if (sight.window == 0) return 0;
    return std::clamp<int64_t>(row + sizes.keys - sizes.rows - sight.window + 1, 0, sizes.keys);
  }
  int64_t end(int64_t row) const {
    if (!sight.causal) return sizes.keys;
    return std::clamp<int64_t>(row + sizes.keys - sizes.rows + 1, 0, sizes.keys);
  }
  bool blind(int64_t batch, int64_t head, int64_t row) const {
    return !RowSight::sees_any(row_of<bool>(sight.mask, batch, head, row), begin(row), end(row));
  }
  bool any_blind(int64_t batch, int64_t head, int64_t first_row, int64_t num_rows) const {
    if (!sight.mask.defined()) return begin(first_row) >= end(first_row);  // later rows see later keys too
    for (int64_t row = first_row; row < first_row + num_rows; row++) {
      if (blind(batch, head, row)) return true;
    }
    return false;
  }

  // In a block of keys from `first_key` on.
  RowSight of(int64_t batch, int64_t head, int64_t row, int64_t first_key, int64_t num_keys) const {
    const int64_t first = begin(row), last = end(row);
    const bool* const mask = row_of<bool>(sight.mask, batch, head, row);
    const float* const bias = row_of<float>(sight.bias, batch, head, row);
    const bool is_blind = !RowSight::sees_any(mask, first, last);
    return {mask ? mask + first_key : nullptr,
            bias ? bias + first_key : nullptr,
            is_blind ? 0 : std::max<int64_t>(0, first - first_key),
            is_blind ? num_keys : std::min(num_keys, last - first_key),
            is_blind,
            dropout_of(batch, head, row, first_key)};
  }

 private:
  std::optional<DropoutMask> dropout_of(int64_t batch, int64_t head, int64_t row, int64_t first_key) const {
    if (!sight.dropout) return {};
    const int64_t element = ((batch * sizes.heads + head) * sizes.rows + row) * sizes.keys + first_key;
    return sight.dropout->mask.at(sight.dropout->places.of(element));
  }
};

// exp() of it is 0 beside any score that is seen.
constexpr float kHidden = std::numeric_limits<float>::lowest();

// scores = scale * scores + bias where the row sees, hidden elsewhere.
TROUPE_INLINE void apply_sight(float* __restrict scores, int64_t num_columns, float scale, const RowSight& sight) {
  for (int64_t i = 0; i < num_columns; i++) scores[i] *= scale;
  if (sight.bias) {
    for (int64_t i = 0; i < num_columns; i++) scores[i] += sight.bias[i];
  }
  if (sight.mask) {
    for (int64_t i = 0; i < num_columns; i++) scores[i] = sight.mask[i] ? scores[i] : kHidden;
  }
  for (int64_t i = 0; i < sight.first; i++) scores[i] = kHidden;
  for (int64_t i = sight.last; i < num_columns; i++) scores[i] = kHidden;
}

// The factors of a row's elements: 0 where one is dropped.
struct DropFactors {
  static TROUPE_INLINE void run(float* __restrict factors, int64_t num_columns, DropoutMask mask) {
    each_dropped(mask, 0, num_columns,
                 [&](int64_t i, bool dropped) TROUPE_INLINE_LAMBDA { factors[i] = dropped ? 0.0f : mask.scale; });
  }
};

// The results of attention.
struct Attended {
  at::Tensor out_BHTD;        // laid out as [B,T,H,D]
  at::Tensor logsumexp_BHT1;  // float32
};

struct AttentionGradients {
  at::Tensor q, k, v;
};

}  // namespace troupe
