#include "kernels/cpu/attention_rows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
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

// The factors of some rows at a time, for this thread; null where nothing is dropped.
const float* drop_factors(const RowSight* sights, int64_t count, int64_t num_columns) {
  if (!sights[0].dropout) return nullptr;
  static thread_local std::vector<float> factors;
  if (factors.size() < static_cast<size_t>(count * num_columns)) factors.resize(static_cast<size_t>(count * num_columns));
  for (int64_t row = 0; row < count; row++) {
    run_best<DropFactors>(factors.data() + row * num_columns, num_columns, *sights[row].dropout);
  }
  return factors.data();
}

// Some rows of scores, one after the other. Few enough that they stay in the first-level cache, many enough that one row's
// wait for its own sum is filled by the next one's.
constexpr int64_t kRowsAtATime = 16;

struct ScoreRows {
  int64_t count;        // at most kRowsAtATime
  int64_t num_columns;
  int64_t walked;       // columns from here on are hidden from all of them
  const RowSight* sights;  // of each row; null: all see every column
  const float* factors;    // of each element, count * num_columns; null: nothing is dropped
};

// `scores` is overwritten with exponentials on the way.
template <class Element>
struct Softmax {
  static TROUPE_INLINE void run(float* __restrict scores, Element* __restrict probabilities, float* __restrict logsumexps,
                                float scale, ScoreRows rows) {
    float maxima[kRowsAtATime], sums[kRowsAtATime];
    const int64_t columns = rows.num_columns, walked = rows.walked;
    for (int64_t row = 0; row < rows.count; row++) {
      float* __restrict own = scores + row * columns;
      if (rows.sights) {
        apply_sight(own, walked, scale, rows.sights[row]);
      } else {
        for (int64_t i = 0; i < walked; i++) own[i] *= scale;
      }
      const float max = max_of<kScoreLanes>(0, walked, kHidden, [&](int64_t i) TROUPE_INLINE_LAMBDA { return own[i]; });
      for (int64_t i = 0; i < walked; i++) own[i] -= max;
      maxima[row] = max;
    }
    // Complete rows are one stretch, without a tail for each.
    const bool whole = walked == columns;
    const int64_t stretches = whole ? 1 : rows.count, length = whole ? rows.count * columns : walked;
    for (int64_t stretch = 0; stretch < stretches; stretch++) {
      float* __restrict own = scores + stretch * columns;
      for (int64_t i = 0; i < length; i++) own[i] = exp_f32(own[i]);
    }
    for (int64_t row = 0; row < rows.count; row++) {
      const float* own = scores + row * columns;
      sums[row] = sum_terms<float, kScoreLanes>(0, walked, [&](int64_t i) TROUPE_INLINE_LAMBDA { return own[i]; });
    }
    for (int64_t row = 0; row < rows.count; row++) {
      const float* own = scores + row * columns;
      const float* factors = rows.factors ? rows.factors + row * columns : nullptr;
      Element* __restrict to = probabilities + row * columns;
      const float inverse = 1.0f / sums[row];
      if (factors) {
        for (int64_t i = 0; i < walked; i++) store(to, i, own[i] * inverse * factors[i]);
      } else {
        for (int64_t i = 0; i < walked; i++) store(to, i, own[i] * inverse);
      }
      for (int64_t i = walked; i < columns; i++) store(to, i, 0.0f);
    }
    for (int64_t row = 0; row < rows.count; row++) logsumexps[row] = maxima[row] + log_f32(sums[row]);
    for (int64_t row = 0; row < rows.count; row++) {
      if (rows.sights && rows.sights[row].blind) see_alike(probabilities + row * columns, logsumexps + row, rows, row);
    }
  }

  // A row that sees nothing weighs all columns alike.
  static TROUPE_INLINE void see_alike(Element* __restrict to, float* logsumexp, const ScoreRows& rows, int64_t row) {
    const float* factors = rows.factors ? rows.factors + row * rows.num_columns : nullptr;
    const float share = 1.0f / static_cast<float>(rows.num_columns);
    for (int64_t i = 0; i < rows.num_columns; i++) store(to, i, factors ? share * factors[i] : share);
    *logsumexp = 0.0f;
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

  // The row's dot is that of the dropped probabilities and their gradients, which is that of the undropped ones and theirs.
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
struct Dots {
  static TROUPE_INLINE void run(const Element* a, int64_t a_stride, const Element* b, int64_t b_stride, float* dots,
                                int64_t num_rows, int64_t dim) {
    for (int64_t row = 0; row < num_rows; row++) {
      dots[row] = sum_terms<float, kScoreLanes>(0, dim, [&](int64_t i) TROUPE_INLINE_LAMBDA {
        return load(a, row * a_stride + i) * load(b, row * b_stride + i);
      });
    }
  }
};

// The rows of a cut [B,H,R,D] whose last dim has no gaps, head by head.
template <class Element>
struct HeadRows {
  Element* data;
  int64_t heads, batch_stride, head_stride, row_stride;

  explicit HeadRows(const at::Tensor& cut)
      : data(cut.data_ptr<std::remove_const_t<Element>>()),
        heads(cut.size(1)),
        batch_stride(cut.stride(0)),
        head_stride(cut.stride(1)),
        row_stride(cut.stride(2)) {}

  Element* of(int64_t head) const { return data + head / heads * batch_stride + head % heads * head_stride; }
};

template <class To, class From>
struct CopyRows {
  static TROUPE_INLINE void run(To* __restrict to, int64_t to_stride, const From* __restrict from, int64_t from_stride,
                                int64_t num_rows, int64_t dim) {
    for (int64_t row = 0; row < num_rows; row++) {
      for (int64_t i = 0; i < dim; i++) store(to, row * to_stride + i, load(from, row * from_stride + i));
    }
  }
};

template <class To, class From>
struct AddRows {
  static TROUPE_INLINE void run(To* __restrict to, int64_t to_stride, const From* __restrict from, int64_t from_stride,
                                int64_t num_rows, int64_t dim) {
    for (int64_t row = 0; row < num_rows; row++) {
      for (int64_t i = 0; i < dim; i++) store(to, row * to_stride + i, load(to, row * to_stride + i) + load(from, row * from_stride + i));
    }
  }
};

template <template <class, class> class Body>
void each_head_row(const at::Tensor& from_BHRD, const at::Tensor& to_BHRD) {
  const int64_t rows = from_BHRD.size(2), dim = from_BHRD.size(3);
  with_float_type(to_BHRD.scalar_type(), [&](auto* to_type) {
    with_float_type(from_BHRD.scalar_type(), [&](auto* from_type) {
      using To = std::remove_pointer_t<decltype(to_type)>;
      using From = std::remove_pointer_t<decltype(from_type)>;
      const HeadRows<To> to(to_BHRD);
      const HeadRows<const From> from(from_BHRD);
      at::parallel_for(0, from_BHRD.size(0) * from.heads, grain_rows(rows * dim), [&](int64_t first, int64_t last) {
        for (int64_t head = first; head < last; head++) {
          run_best<Body<To, From>>(to.of(head), to.row_stride, from.of(head), from.row_stride, rows, dim);
        }
      });
    });
  });
}

// libtorch's own copy calls its inner loop for each row of a head, which is a few vectors long; its sum does too.
void copy_heads(const at::Tensor& from_BHRD, const at::Tensor& to_BHRD) {
  if (from_BHRD.stride(3) == 1 && to_BHRD.stride(3) == 1) return each_head_row<CopyRows>(from_BHRD, to_BHRD);
  at::Tensor(to_BHRD).copy_(from_BHRD);
}

void add_heads(const at::Tensor& from_BHRD, const at::Tensor& to_BHRD) { each_head_row<AddRows>(from_BHRD, to_BHRD); }

// Calls body(row index over all heads, visible columns) for every row, in parallel.
template <class Body>
void each_row(const at::Tensor& scores_GRC, Visibility visibility, const Body& body) {
  const int64_t rows = scores_GRC.size(1), columns = scores_GRC.size(2);
  at::parallel_for(0, scores_GRC.size(0) * rows, grain_rows(columns), [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; index++) body(index, visibility.of_row(index % rows, columns));
  });
}

// Calls body(first row over all heads, number of rows) for every few rows, in parallel.
template <class Body>
void each_few_rows(const at::Tensor& scores_GRC, const Body& body) {
  const int64_t rows = scores_GRC.size(0) * scores_GRC.size(1);
  at::parallel_for(0, rows, grain_rows(scores_GRC.size(2)), [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row += kRowsAtATime) body(row, std::min(kRowsAtATime, last - row));
  });
}

// Softmax of `count` rows; the one at `row` sees columns 0 to visible_of(row) - 1.
template <class Element, class VisibleOf>
void softmax_few_rows(float* scores, int64_t count, int64_t columns, float scale, Element* probabilities, float* logsumexps,
                      const VisibleOf& visible_of) {
  std::array<RowSight, kRowsAtATime> sights;
  int64_t most = 0, least = columns;
  for (int64_t row = 0; row < count; row++) {
    const int64_t visible = visible_of(row);
    sights[static_cast<size_t>(row)] = {nullptr, nullptr, 0, visible, false, {}};
    most = std::max(most, visible);
    least = std::min(least, visible);
  }
  run_best<Softmax<Element>>(scores, probabilities, logsumexps, scale,
                             ScoreRows{count, columns, whole_lanes(most, columns), least < columns ? sights.data() : nullptr, nullptr});
}

}  // namespace

void softmax_rows(const at::Tensor& scores_GRC, Visibility visibility, float scale, const at::Tensor& probabilities_GRC,
                  const at::Tensor& logsumexp_GR) {
  const int64_t columns = scores_GRC.size(2), rows_of_head = scores_GRC.size(1);
  auto* scores = scores_GRC.data_ptr<float>();
  auto* logsumexps = logsumexp_GR.data_ptr<float>();
  with_float_type(probabilities_GRC.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    auto* probabilities = probabilities_GRC.data_ptr<Element>();
    each_few_rows(scores_GRC, [&](int64_t first, int64_t count) {
      softmax_few_rows(scores + first * columns, count, columns, scale, probabilities + first * columns, logsumexps + first,
                       [&](int64_t row) { return visibility.of_row((first + row) % rows_of_head, columns); });
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
    each_few_rows(scores_GRC, [&](int64_t first, int64_t count) {
      std::array<RowSight, kRowsAtATime> sights;
      for (int64_t row = 0; row < count; row++) sights[static_cast<size_t>(row)] = sight(first + row);
      run_best<Softmax<Element>>(
          scores + first * columns, probabilities + first * columns, logsumexps + first, scale,
          ScoreRows{count, columns, columns, sights.data(), drop_factors(sights.data(), count, columns)});
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
      const float* factors = drop_factors(&seen, 1, columns);
      run_best<SightedSoftmaxBackward<Element>>(scores + at, probabilities + at, gradients + at,
                                                dbiased ? dbiased + at : nullptr, columns, logsumexps[row], dots[row], scale,
                                                seen, factors);
    });
  });
}

at::Tensor row_dots(const at::Tensor& a_BHRD, const at::Tensor& b_BHRD) {
  const auto dense = [](const at::Tensor& cut) { return cut.stride(3) == 1 ? cut : cut.contiguous(); };
  const at::Tensor a_cut = dense(a_BHRD), b_cut = dense(b_BHRD);
  const int64_t heads = a_cut.size(1), rows = a_cut.size(2), dim = a_cut.size(3);
  at::Tensor dots_GR = at::empty({a_cut.size(0) * heads, rows}, a_cut.options().dtype(at::kFloat));
  auto* dots = dots_GR.data_ptr<float>();
  with_float_type(a_cut.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const HeadRows<const Element> a(a_cut), b(b_cut);
    at::parallel_for(0, dots_GR.size(0), grain_rows(rows * dim), [&](int64_t first, int64_t last) {
      for (int64_t head = first; head < last; head++) {
        run_best<Dots<Element>>(a.of(head), a.row_stride, b.of(head), b.row_stride, dots + head * rows, rows, dim);
      }
    });
  });
  return dots_GR;
}

at::Tensor pack_heads(const at::Tensor& cut, at::ScalarType dtype) {
  const at::Tensor packed = at::empty(cut.sizes(), cut.options().dtype(dtype));
  copy_heads(cut, packed);
  return packed.view({cut.size(0) * cut.size(1), cut.size(2), cut.size(3)});
}

void unpack_heads(const at::Tensor& packed_GRD, const at::Tensor& cut) { copy_heads(packed_GRD.view(cut.sizes()), cut); }

at::Tensor projected_heads(at::IntArrayRef sizes_BHTD, const at::TensorOptions& options) {
  return at::empty({sizes_BHTD[0], sizes_BHTD[2], sizes_BHTD[1], sizes_BHTD[3]}, options).transpose(1, 2);
}

KeyGradients::KeyGradients(const at::Tensor& keys_BHSD, bool once)
    : once_(once),
      options_(keys_BHSD.options()),
      sums_(once ? projected_heads(keys_BHSD.sizes(), options_)
                 : at::zeros(keys_BHSD.sizes(), options_.dtype(at::kFloat))) {}

void KeyGradients::add(const at::Tensor& share_GSD, const at::Tensor& cut_of_sums) {
  if (once_) {
    unpack_heads(share_GSD, cut_of_sums);
  } else {
    add_heads(share_GSD.view(cut_of_sums.sizes()), cut_of_sums);
  }
}

at::Tensor KeyGradients::rounded() const {
  if (once_) return sums_;
  const at::Tensor rounded = projected_heads(sums_.sizes(), options_);
  copy_heads(sums_, rounded);
  return rounded;
}

}  // namespace troupe
