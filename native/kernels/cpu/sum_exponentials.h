// The softmax of a row of logits: its largest and the sum of its exponentials, in one walk over the row in memory; and its probabilities.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"

namespace troupe {

constexpr int kRowLanes = 32;
constexpr int64_t kRowPiece = 2048;  // of a row: read twice, the second time from the first-level cache
constexpr int64_t kPiecesAhead = 2;  // prefetched: memory works on while exponentials are computed

struct MaxAndSum {
  float max;
  float sum;  // of exp(x - max)
};

// The maximum so far is raised piece by piece, and the sum rescaled to it.
// Milakov and Gimelshein 2018, https://arxiv.org/abs/1805.02867.
template <class Element>
struct SumExponentials {
  static TROUPE_INLINE MaxAndSum run(const Element* x_V, int64_t num_classes) {
    constexpr float kLowest = std::numeric_limits<float>::lowest();
    constexpr auto kLine = static_cast<int64_t>(64 / sizeof(Element));
    MaxAndSum row{kLowest, 0.0f};
    for (int64_t first = 0; first < num_classes; first += kRowPiece) {
      const int64_t last = std::min(num_classes, first + kRowPiece);
      for (int64_t i = first; i < last; i += kLine) __builtin_prefetch(x_V + i + kPiecesAhead * kRowPiece, 0, 2);
      const auto logit = [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(x_V, i); };
      const float max = max_of<kRowLanes>(first, last, row.max, logit);
      const auto exponential = [&](int64_t i) TROUPE_INLINE_LAMBDA { return exp_f32(load(x_V, i) - max); };
      row.sum = row.sum * exp_f32(row.max - max) + sum_terms<float, kRowLanes>(first, last, exponential);
      row.max = max;
    }
    return row;
  }
};

// scale * exp(x - logsumexp); `to` may be `x`.
template <class Element>
struct ScaledProbabilities {
  static TROUPE_INLINE void run(const Element* x_V, Element* to_V, int64_t num_classes, float logsumexp, float scale) {
#pragma GCC ivdep
    for (int64_t i = 0; i < num_classes; i++) store(to_V, i, exp_f32(load(x_V, i) - logsumexp) * scale);
  }
};

}  // namespace troupe
