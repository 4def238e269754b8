// A head is one piece of work. Its keys and values are packed in pairs once; what 64 query rows make then stays in the second-level
// cache until it is used up. Gradients of keys and values are summed over several such blocks at once, in float32.

#include "kernels/cpu/tile_attention.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "core/programs/tile_products.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/round_numbers.h"
#include "kernels/cpu/tile_pairs.h"

namespace troupe {
namespace {

using Narrow = at::BFloat16;

constexpr int64_t kQueryRows = 64;
constexpr int64_t kMaxKeys = 1024;
constexpr int64_t kMaxSummedRows = 256;       // for gradients of keys and values
constexpr int64_t kMaxSummedNumel = 1 << 17;  // of their probabilities
constexpr int64_t kMaxWidth = 128;
constexpr int kDotLanes = 32;
constexpr int32_t kSoftmaxLanes = 32;  // divides the columns

TROUPE_INLINE int64_t round_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// A head's matrix, each row without gaps.
struct HeadMatrix {
  Narrow* data;
  int64_t stride;
  bool streams;  // what is written goes past the cache

  HeadMatrix(const at::Tensor& heads_BHTD, int64_t index)
      : data(heads_BHTD.data_ptr<Narrow>() + index / heads_BHTD.size(1) * heads_BHTD.stride(0) +
             index % heads_BHTD.size(1) * heads_BHTD.stride(1)),
        stride(heads_BHTD.stride(2)),
        streams(static_cast<int64_t>(heads_BHTD.nbytes()) >= kStreamedBytes && stride % kRounded == 0 &&
                reinterpret_cast<intptr_t>(data) % 64 == 0) {}

  const uint16_t* bits(int64_t row = 0) const { return reinterpret_cast<const uint16_t*>(data + row * stride); }
  Narrow* row(int64_t index) const { return data + index * stride; }
};

// The sizes of a call's pieces.
struct HeadSizes {
  int64_t rows, keys, width;
  int64_t all_columns;  // keys, rounded up to 64
  bool causal;          // with as many keys as rows

  HeadSizes(const at::Tensor& q, const at::Tensor& k, bool is_causal)
      : rows(q.size(2)), keys(k.size(2)), width(q.size(3)), all_columns(round_up(keys, kQueryRows)), causal(is_causal) {}

  int64_t columns(int64_t first, int64_t count) const {
    return causal ? std::min(all_columns, round_up(first + count, kQueryRows)) : all_columns;
  }
  int64_t visible(int64_t row) const { return causal ? std::min(keys, row + 1) : keys; }

  // Query rows whose gradients of keys and values are one sum.
  int64_t together() const {
    const int64_t most = std::min(kMaxSummedRows, round_up(rows, kQueryRows));
    return std::clamp(kMaxSummedNumel / all_columns / kQueryRows * kQueryRows, kQueryRows, most);
  }
};

// Prefetches rows of the next head, which lie too far apart for the processor's own prefetcher. Inline, as `Factor::prefetch` is.
TROUPE_INLINE void prefetch_next(std::initializer_list<at::Tensor> all_heads, int64_t head, int64_t first, int64_t count) {
  for (const at::Tensor& heads_BHTD : all_heads) {
    if (head + 1 >= heads_BHTD.size(0) * heads_BHTD.size(1)) return;
    const HeadMatrix next(heads_BHTD, head + 1);
    const int64_t last = std::min(first + count, heads_BHTD.size(2)), width = heads_BHTD.size(3);
    for (int64_t row = first; row < last; row++) {
      for (int64_t i = 0; i < width; i += kRounded) __builtin_prefetch(next.row(row) + i, 0, 2);
    }
  }
}

// Rows of sums, each times its factor, which may be null, into rows of a matrix from `first` on.
TROUPE_AVX512_BF16 void round_rows(const float* from, const float* factors, const HeadMatrix& to, int64_t first, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; row++) {
    const float factor = factors ? factors[row] : 1.0f;
    for (int64_t column = 0; column < width; column += kRounded) {
      float scaled[kRounded];
      for (int64_t i = 0; i < kRounded; i++) scaled[i] = from[row * width + column + i] * factor;
      round_numbers(scaled, to.row(first + row) + column, to.streams);
    }
  }
}

// The largest of a row's scaled scores, of which `visible` are seen.
TROUPE_AVX512_BF16 float largest_score(const float* scores, int64_t visible, float scale) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  return max_of<kSoftmaxLanes>(0, visible, kLowest, [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i] * scale; });
}

// Exponentials of a row's scaled scores less `largest`, 0 from `visible` on. Returns their sum, before they are rounded.
TROUPE_AVX512_BF16 float exponentials(const float* scores, Narrow* to, int64_t visible, int64_t columns, float scale, float largest) {
  float sums[kSoftmaxLanes] = {};
  int64_t first = 0;
  // Lanes of a known number: a loop that ends where the visible scores do would leave some to be computed one by one.
  for (; first < visible; first += kSoftmaxLanes) {
    const auto seen_lanes = static_cast<int32_t>(std::min<int64_t>(kSoftmaxLanes, visible - first));
    float seen[kSoftmaxLanes];
    for (int32_t lane = 0; lane < kSoftmaxLanes; lane++) {
      const float exponential = exp_f32(fmaf(scores[first + lane], scale, -largest));
      seen[lane] = lane < seen_lanes ? exponential : 0.0f;
      sums[lane] += seen[lane];
    }
    round_numbers(seen, to + first, false);
  }
  std::fill(to + first, to + columns, Narrow(0.0f));
  return sum_lanes(sums);
}

// Softmax of a block's rows, which are still to be multiplied by `factors`.
TROUPE_AVX512_BF16 void tile_softmax(const float* scores, Narrow* to, const HeadSizes& sizes, int64_t first, int64_t count, float scale,
                                     float* factors, float* logsumexps) {
  const int64_t columns = sizes.columns(first, count);
  float largest[kQueryRows], sums[kQueryRows] = {};
  for (int64_t row = 0; row < count; row++) largest[row] = largest_score(scores + row * columns, sizes.visible(first + row), scale);
  for (int64_t row = 0; row < count; row++) {
    const int64_t at = row * columns;
    sums[row] = exponentials(scores + at, to + at, sizes.visible(first + row), columns, scale, largest[row]);
  }
  for (int64_t row = 0; row < count; row++) factors[row] = 1.0f / sums[row];
  for (int64_t row = 0; row < count; row++) logsumexps[row] = largest[row] + log_f32(sums[row]);
}

// Probabilities again, and the gradient of scores before they are scaled, times the scale. Both are 0 from `visible` on.
TROUPE_AVX512_BF16 void tile_softmax_backward(const float* scores, const float* dprobabilities, Narrow* probabilities, Narrow* dscores,
                                              int64_t visible, int64_t columns, float logsumexp, float dot, float scale) {
  int64_t first = 0;
  for (; first < visible; first += kSoftmaxLanes) {
    const auto seen_lanes = static_cast<int32_t>(std::min<int64_t>(kSoftmaxLanes, visible - first));
    float seen[kSoftmaxLanes], gradients[kSoftmaxLanes];
    for (int32_t lane = 0; lane < kSoftmaxLanes; lane++) {
      const float probability = exp_f32(fmaf(scores[first + lane], scale, -logsumexp));
      const float gradient = probability * (dprobabilities[first + lane] - dot) * scale;
      seen[lane] = lane < seen_lanes ? probability : 0.0f;
      gradients[lane] = lane < seen_lanes ? gradient : 0.0f;
    }
    round_numbers(seen, probabilities + first, false);
    round_numbers(gradients, dscores + first, false);
  }
  std::fill(probabilities + first, probabilities + columns, Narrow(0.0f));
  std::fill(dscores + first, dscores + columns, Narrow(0.0f));
}

TROUPE_AVX512_BF16 float row_dot(const Narrow* a, const Narrow* b, int64_t width) {
  return sum_terms<float, kDotLanes>(0, width, [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(a, i) * load(b, i); });
}

void multiply_rows(int64_t rows, int64_t columns, int64_t inner, const void* a, int64_t a_stride, const uint32_t* b, int64_t b_width, float* to,
              bool add) {
  at::native::cpublas::brgemm(rows, columns, inner, a_stride, b_width, columns, add, static_cast<const Narrow*>(a),
                              reinterpret_cast<const Narrow*>(b), to, true);
}

// Cuts a thread's scratch.
class Cutter {
 public:
  explicit Cutter(uint32_t* next) : next_(next) {}
  template <class T>
  T* cut(int64_t count) {
    T* const here = reinterpret_cast<T*>(next_);
    next_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64) / static_cast<int64_t>(sizeof(uint32_t));
    return here;
  }

 private:
  uint32_t* next_;
};

// Rows of keys or values in pairs along the keys: [all_columns / 2][width], zeros behind the last key.
void pair_keys(const HeadMatrix& from, const HeadSizes& sizes, uint32_t* to) {
  run_best<PairRows>(from.bits(), from.stride, sizes.keys, sizes.width, sizes.width, to);
  std::fill(to + (sizes.keys + 1) / 2 * sizes.width, to + sizes.all_columns / 2 * sizes.width, 0u);
}

// The same along the width: [width / 2][all_columns].
void pair_widths(const HeadMatrix& from, const HeadSizes& sizes, uint32_t* to) {
  run_best<PairColumns>(from.bits(), from.stride, sizes.width, sizes.keys, sizes.all_columns, to);
}

// Calls body(head, scratch) for each head, in parallel. `words`: of scratch.
template <class Body>
void each_head(const at::Tensor& q, int64_t words, const Body& body) {
  at::parallel_for(0, q.size(0) * q.size(1), 1, [&](int64_t first, int64_t last) {
    uint32_t* const memory = scratch<uint32_t, HeadSizes>(static_cast<size_t>(words + kQueryRows));
    auto* const aligned = reinterpret_cast<uint32_t*>(round_up(reinterpret_cast<int64_t>(memory), 64));
    for (int64_t head = first; head < last; head++) body(head, Cutter(aligned));
    at::native::cpublas::brgemm_release();
    fence_streams();
  });
}

bool has_head_rows(const at::Tensor& heads) { return heads.is_cpu() && heads.scalar_type() == at::kBFloat16 && heads.stride(3) == 1; }

}  // namespace

bool attends_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (!wants_tile_products() || !has_head_rows(q) || !has_head_rows(k) || !has_head_rows(v)) return false;
  const int64_t width = q.size(3), keys = k.size(2);
  return width % 32 == 0 && width <= kMaxWidth && keys <= kMaxKeys && q.size(2) > 0 && keys > 0;
}

void attend_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, TileAttentionOptions options, const at::Tensor& out,
                     const at::Tensor& logsumexp_BHT1) {
  const HeadSizes sizes(q, k, options.causal);
  const int64_t columns = sizes.all_columns, width = sizes.width;
  float* const logsumexps = logsumexp_BHT1.mutable_data_ptr<float>();
  each_head(q, columns * width + kQueryRows * (columns * 3 / 2 + width), [&](int64_t head, Cutter cutter) {
    const HeadMatrix queries(q, head), to(out, head);
    auto* const keys = cutter.cut<uint32_t>(columns / 2 * width);
    auto* const values = cutter.cut<uint32_t>(columns / 2 * width);
    auto* const scores = cutter.cut<float>(kQueryRows * columns);
    auto* const seen = cutter.cut<Narrow>(kQueryRows * columns);
    auto* const sums = cutter.cut<float>(kQueryRows * width);
    pair_widths(HeadMatrix(k, head), sizes, keys);
    pair_keys(HeadMatrix(v, head), sizes, values);
    for (int64_t first = 0; first < sizes.rows; first += kQueryRows) {
      const int64_t count = std::min(kQueryRows, sizes.rows - first), here = sizes.columns(first, count);
      prefetch_next({q, k, v}, head, first, count);
      multiply_rows(count, here, width, queries.row(first), queries.stride, keys, columns, scores, false);
      float factors[kQueryRows];
      tile_softmax(scores, seen, sizes, first, count, options.scale, factors, logsumexps + head * sizes.rows + first);
      multiply_rows(count, width, here, seen, here, values, width, sums, false);
      round_rows(sums, factors, to, first, count, width);
    }
  });
}

void attend_in_tiles_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                              const at::Tensor& logsumexp_BHT1, TileAttentionOptions options, const TileAttentionGradients& gradients) {
  const HeadSizes sizes(q, k, options.causal);
  const int64_t columns = sizes.all_columns, width = sizes.width, together = sizes.together();
  const float* const logsumexps = logsumexp_BHT1.const_data_ptr<float>();
  const int64_t words = columns * width * 7 / 2 + kQueryRows * (columns * 2 + width) + together * (columns + width + kQueryRows / 2);
  each_head(q, words, [&](int64_t head, Cutter cutter) {
    const HeadMatrix queries(q, head), outs(out, head), upstream(dout, head), dq(gradients.q, head);
    auto* const keys = cutter.cut<uint32_t>(columns / 2 * width);  // in pairs along the width
    auto* const values = cutter.cut<uint32_t>(columns / 2 * width);
    auto* const key_rows = cutter.cut<uint32_t>(columns / 2 * width);  // along the keys
    auto* const dk = cutter.cut<float>(columns * width);
    auto* const dv = cutter.cut<float>(columns * width);
    auto* const scores = cutter.cut<float>(kQueryRows * columns);
    auto* const dprobabilities = cutter.cut<float>(kQueryRows * columns);
    auto* const sums = cutter.cut<float>(kQueryRows * width);
    auto* const probabilities = cutter.cut<Narrow>(together * columns);
    auto* const dscores = cutter.cut<Narrow>(together * columns);
    auto* const packed = cutter.cut<uint16_t>(kQueryRows * together);
    auto* const query_rows = cutter.cut<uint32_t>(together / 2 * width);
    auto* const upstream_rows = cutter.cut<uint32_t>(together / 2 * width);
    pair_widths(HeadMatrix(k, head), sizes, keys);
    pair_widths(HeadMatrix(v, head), sizes, values);
    pair_keys(HeadMatrix(k, head), sizes, key_rows);

    // Probabilities and the gradient of scores of 64 rows, from row `first` on, into rows of `columns`; and the gradient of the queries.
    const auto walk_rows = [&](int64_t first, int64_t count, Narrow* own_probabilities, Narrow* own_dscores) {
      const int64_t here = sizes.columns(first, count);
      prefetch_next({q, k, v, dout, out}, head, first, count);
      multiply_rows(count, here, width, queries.row(first), queries.stride, keys, columns, scores, false);
      multiply_rows(count, here, width, upstream.row(first), upstream.stride, values, columns, dprobabilities, false);
      for (int64_t row = 0; row < count; row++) {
        const float dot = row_dot(upstream.row(first + row), outs.row(first + row), width);
        tile_softmax_backward(scores + row * here, dprobabilities + row * here, own_probabilities + row * columns, own_dscores + row * columns,
                              sizes.visible(first + row), here, logsumexps[head * sizes.rows + first + row], dot, options.scale);
      }
      multiply_rows(count, width, here, own_dscores, columns, key_rows, width, sums, false);
      round_rows(sums, nullptr, dq, first, count, width);
    };

    for (int64_t begin = 0; begin < sizes.rows; begin += together) {
      const int64_t num_rows = std::min(together, sizes.rows - begin);
      for (int64_t row = 0; row < num_rows; row += kQueryRows) {
        walk_rows(begin + row, std::min(kQueryRows, num_rows - row), probabilities + row * columns, dscores + row * columns);
      }
      run_best<PairRows>(queries.bits(begin), queries.stride, num_rows, width, width, query_rows);
      run_best<PairRows>(upstream.bits(begin), upstream.stride, num_rows, width, width, upstream_rows);
      for (int64_t key = 0; key < sizes.columns(begin, num_rows); key += kQueryRows) {
        // The first rows that see 64 keys are the first to have a gradient for them.
        const int64_t blind = sizes.causal ? std::max<int64_t>(0, key - begin) : 0, seeing = num_rows - blind, even = seeing + seeing % 2;
        const bool adds = sizes.causal ? key < begin : begin > 0;
        const auto sum = [&](const Narrow* of_scores, const uint32_t* rows, float* to) {
          run_best<PackTransposedRows>(reinterpret_cast<const uint16_t*>(of_scores + blind * columns + key), columns, seeing, kQueryRows, even, packed);
          multiply_rows(kQueryRows, width, even, packed, even, rows + blind / 2 * width, width, to + key * width, adds);
        };
        sum(dscores, query_rows, dk);
        sum(probabilities, upstream_rows, dv);
      }
    }
    const HeadMatrix to_keys(gradients.k, head), to_values(gradients.v, head);
    round_rows(dk, nullptr, to_keys, 0, sizes.keys, width);
    round_rows(dv, nullptr, to_values, 0, sizes.keys, width);
  });
}

}  // namespace troupe
