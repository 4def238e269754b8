#include "kernels/cpu/attention_rows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"

namespace troupe {
namespace {

constexpr int kScoreLanes = 32;

// Columns that the loops below walk: the visible ones and the hidden ones up to a whole number of lanes, so that no row has
// a scalar tail (which would cost more than all else where rows are short).
TROUPE_INLINE int64_t whole_lanes(int64_t visible, int64_t num_columns) {
  return std::min(num_columns, (visible + kScoreLanes - 1) / kScoreLanes * kScoreLanes);
}

// exp() of it is 0 beside any score that is seen.
constexpr float kHidden = std::numeric_limits<float>::lowest();

// Returns the row's logsumexp. `scores` is overwritten with exponentials on the way.
template <class Element>
struct Softmax {
  static TROUPE_INLINE float run(float* __restrict scores, Element* __restrict probabilities, int64_t visible,
                                 int64_t num_columns, float scale) {
    const int64_t walked = whole_lanes(visible, num_columns);
    for (int64_t i = 0; i < visible; i++) scores[i] *= scale;
    for (int64_t i = visible; i < walked; i++) scores[i] = kHidden;
    const float max = max_of<kScoreLanes>(0, walked, kHidden, [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i]; });
    for (int64_t i = 0; i < walked; i++) scores[i] = exp_f32(scores[i] - max);
    const float sum = sum_terms<float, kScoreLanes>(0, walked, [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i]; });
    const float inverse = 1.0f / sum;
    for (int64_t i = 0; i < walked; i++) store(probabilities, i, scores[i] * inverse);
    for (int64_t i = walked; i < num_columns; i++) store(probabilities, i, 0.0f);
    return max + log_f32(sum);
  }
};

template <class Element>
struct SoftmaxBackward {
  static TROUPE_INLINE void run(float* __restrict scores, Element* __restrict probabilities, Element* __restrict gradients,
                                int64_t visible, int64_t num_columns, float logsumexp, float dot, float scale) {
    const int64_t walked = whole_lanes(visible, num_columns);
    for (int64_t i = visible; i < walked; i++) scores[i] = kHidden;
    for (int64_t i = visible; i < num_columns; i++) store(gradients, i, 0.0f);
    for (int64_t i = 0; i < walked; i++) {
      const float probability = exp_f32(scores[i] * scale - logsumexp);
      store(probabilities, i, probability);
      store(gradients, i, probability * (load(gradients, i) - dot) * scale);
    }
    for (int64_t i = walked; i < num_columns; i++) store(probabilities, i, 0.0f);
  }
};

// scores = scale * scores + bias where the row sees, hidden elsewhere.
TROUPE_INLINE void apply_sight(float* __restrict scores, int64_t num_columns, float scale, RowSight sight) {
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

// What an element of a row is multiplied by: 0 where it is dropped.
struct DropFactors {
  static TROUPE_INLINE void run(float* __restrict factors, int64_t num_columns, DropoutMask mask) {
    each_dropped(mask, 0, num_columns,
                 [&](int64_t i, bool dropped) TROUPE_INLINE_LAMBDA { factors[i] = dropped ? 0.0f : mask.scale; });
  }
};

// The factors of one row at a time, for this thread; null where nothing is dropped.
const float* drop_factors(const RowSight& sight, int64_t num_columns) {
  if (!sight.dropout) return nullptr;
  static thread_local std::vector<float> factors;
  if (factors.size() < static_cast<size_t>(num_columns)) factors.resize(static_cast<size_t>(num_columns));
  run_best<DropFactors>(factors.data(), num_columns, *sight.dropout);
  return factors.data();
}

template <class Element>
struct SightedSoftmax {
  static TROUPE_INLINE float run(float* __restrict scores, Element* __restrict probabilities, int64_t num_columns,
                                 float scale, RowSight sight, const float* __restrict factors) {
    if (sight.blind) {
      const float share = 1.0f / static_cast<float>(num_columns);
      for (int64_t i = 0; i < num_columns; i++) store(probabilities, i, factors ? share * factors[i] : share);
      return 0.0f;
    }
    apply_sight(scores, num_columns, scale, sight);
    const auto score = [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i]; };
    const float max = max_of<kScoreLanes>(0, num_columns, kHidden, score);
    for (int64_t i = 0; i < num_columns; i++) scores[i] = exp_f32(scores[i] - max);
    const float sum = sum_terms<float, kScoreLanes>(0, num_columns, score);
    const float inverse = 1.0f / sum;
    if (factors) {
      for (int64_t i = 0; i < num_columns; i++) store(probabilities, i, scores[i] * inverse * factors[i]);
    } else {
      for (int64_t i = 0; i < num_columns; i++) store(probabilities, i, scores[i] * inverse);
    }
    return max + log_f32(sum);
  }
};

// `dbiased` may be null.
template <class Element>
struct SightedSoftmaxBackward {
  static TROUPE_INLINE void run(float* __restrict scores, Element* __restrict probabilities, Element* __restrict gradients,
                                float* __restrict dbiased, int64_t num_columns, float logsumexp, float dot, float scale,
                                RowSight sight, const float* __restrict factors) {
    if (sight.blind) {
      const float share = 1.0f / static_cast<float>(num_columns);
      for (int64_t i = 0; i < num_columns; i++) scores[i] = share;
    } else {
      apply_sight(scores, num_columns, scale, sight);
      for (int64_t i = 0; i < num_columns; i++) scores[i] = exp_f32(scores[i] - logsumexp);
    }
    if (factors) return dropped(scores, probabilities, gradients, dbiased, num_columns, dot, scale, factors);
    if (dbiased) {
      for (int64_t i = 0; i < num_columns; i++) dbiased[i] = scores[i] * (load(gradients, i) - dot);
    }
    for (int64_t i = 0; i < num_columns; i++) {
      store(probabilities, i, scores[i]);
      store(gradients, i, scores[i] * (load(gradients, i) - dot) * scale);
    }
  }

  // The row's dot is that of the dropped probabilities and their gradients, which is that of the whole ones and theirs.
  static TROUPE_INLINE void dropped(const float* __restrict scores, Element* __restrict probabilities,
                                    Element* __restrict gradients, float* __restrict dbiased, int64_t num_columns, float dot,
                                    float scale, const float* __restrict factors) {
    for (int64_t i = 0; i < num_columns; i++) {
      const float dscore = scores[i] * (load(gradients, i) * factors[i] - dot);
      if (dbiased) dbiased[i] = dscore;
      store(probabilities, i, scores[i] * factors[i]);
      store(gradients, i, dscore * scale);
    }
  }
};

template <class Element>
struct Dot {
  static TROUPE_INLINE float run(const Element* a, const Element* b, int64_t numel) {
    return sum_terms<float, kScoreLanes>(0, numel, [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(a, i) * load(b, i); });
  }
};

// Calls body(row index over all heads, visible columns) for every row, in parallel.
template <class Body>
void each_row(const at::Tensor& scores_GRC, Visibility visibility, const Body& body) {
  const int64_t rows = scores_GRC.size(1), columns = scores_GRC.size(2);
  at::parallel_for(0, scores_GRC.size(0) * rows, grain_rows(columns), [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; index++) body(index, visibility.of_row(index % rows, columns));
  });
}

}  // namespace

void softmax_rows(const at::Tensor& scores_GRC, Visibility visibility, float scale, const at::Tensor& probabilities_GRC,
                  const at::Tensor& logsumexp_GR) {
  const int64_t columns = scores_GRC.size(2);
  auto* scores = scores_GRC.data_ptr<float>();
  auto* logsumexps = logsumexp_GR.data_ptr<float>();
  with_float_type(probabilities_GRC.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    auto* probabilities = probabilities_GRC.data_ptr<Element>();
    each_row(scores_GRC, visibility, [&](int64_t row, int64_t visible) {
      logsumexps[row] =
          run_best<Softmax<Element>>(scores + row * columns, probabilities + row * columns, visible, columns, scale);
    });
  });
}

void softmax_rows_backward(const at::Tensor& scores_GRC, Visibility visibility, float scale,
                           const at::Tensor& logsumexp_GR, const at::Tensor& dot_GR, const at::Tensor& probabilities_GRC,
                           const at::Tensor& dprobabilities_GRC) {
  const int64_t columns = scores_GRC.size(2);
  auto* scores = scores_GRC.data_ptr<float>();
  const float* logsumexps = logsumexp_GR.data_ptr<float>();
  const float* dots = dot_GR.data_ptr<float>();
  with_float_type(probabilities_GRC.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    auto* probabilities = probabilities_GRC.data_ptr<Element>();
    auto* gradients = dprobabilities_GRC.data_ptr<Element>();
    each_row(scores_GRC, visibility, [&](int64_t row, int64_t visible) {
      run_best<SoftmaxBackward<Element>>(scores + row * columns, probabilities + row * columns, gradients + row * columns,
                                         visible, columns, logsumexps[row], dots[row], scale);
    });
  });
}

void softmax_sighted_rows(const at::Tensor& scores_GRC, const SightOfRow& sight, float scale,
                          const at::Tensor& probabilities_GRC, const at::Tensor& logsumexp_GR) {
  const int64_t columns = scores_GRC.size(2);
  auto* scores = scores_GRC.data_ptr<float>();
  auto* logsumexps = logsumexp_GR.data_ptr<float>();
  with_float_type(probabilities_GRC.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    auto* probabilities = probabilities_GRC.data_ptr<Element>();
    each_row(scores_GRC, {false, 0}, [&](int64_t row, int64_t) {
      const RowSight seen = sight(row);
      const float* factors = drop_factors(seen, columns);
      logsumexps[row] = run_best<SightedSoftmax<Element>>(scores + row * columns, probabilities + row * columns, columns,
                                                          scale, seen, factors);
    });
  });
}

void softmax_sighted_rows_backward(const at::Tensor& scores_GRC, const SightOfRow& sight, float scale,
                                   const at::Tensor& logsumexp_GR, const at::Tensor& dot_GR,
                                   const at::Tensor& probabilities_GRC, const at::Tensor& dprobabilities_GRC,
                                   const at::Tensor& dbiased_GRC) {
  const int64_t columns = scores_GRC.size(2);
  auto* scores = scores_GRC.data_ptr<float>();
  const float* logsumexps = logsumexp_GR.data_ptr<float>();
  const float* dots = dot_GR.data_ptr<float>();
  auto* dbiased = dbiased_GRC.defined() ? dbiased_GRC.data_ptr<float>() : nullptr;
  with_float_type(probabilities_GRC.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    auto* probabilities = probabilities_GRC.data_ptr<Element>();
    auto* gradients = dprobabilities_GRC.data_ptr<Element>();
    each_row(scores_GRC, {false, 0}, [&](int64_t row, int64_t) {
      const int64_t at = row * columns;
      const RowSight seen = sight(row);
      const float* factors = drop_factors(seen, columns);
      run_best<SightedSoftmaxBackward<Element>>(scores + at, probabilities + at, gradients + at,
                                                dbiased ? dbiased + at : nullptr, columns, logsumexps[row], dots[row], scale,
                                                seen, factors);
    });
  });
}

at::Tensor row_dots(const at::Tensor& a_GRD, const at::Tensor& b_GRD) {
  at::Tensor dots_GR = at::empty({a_GRD.size(0), a_GRD.size(1)}, a_GRD.options().dtype(at::kFloat));
  const int64_t dim = a_GRD.size(2);
  auto* dots = dots_GR.data_ptr<float>();
  with_float_type(a_GRD.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* a = a_GRD.data_ptr<Element>();
    const Element* b = b_GRD.data_ptr<Element>();
    at::parallel_for(0, dots_GR.numel(), grain_rows(dim), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; row++) dots[row] = run_best<Dot<Element>>(a + row * dim, b + row * dim, dim);
    });
  });
  return dots_GR;
}

}  // namespace troupe
