// A head is one piece of work. Its keys and values are laid out in pairs once; what 64 query rows make then stays in the second-level
// cache until it is used up. Gradients of keys and values are summed in float32, row block after row block.

#include "kernels/cpu/tile_attention.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>

#include "core/programs/tile_products.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/tile_pairs.h"

namespace troupe {
namespace {

using Narrow = at::BFloat16;

constexpr int64_t kQueryRows = 64;
constexpr int64_t kMaxKeys = 1024;
constexpr int64_t kMaxWidth = 128;
constexpr int kDotLanes = 32;
constexpr int32_t kSoftmaxLanes = 32;  // divides the columns

TROUPE_INLINE int64_t round_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// A head's matrix, each row without gaps.
struct HeadMatrix {
  Narrow* data;
  int64_t stride;

  HeadMatrix(const at::Tensor& heads_BHTD, int64_t index)
      : data(heads_BHTD.data_ptr<Narrow>() + index / heads_BHTD.size(1) * heads_BHTD.stride(0) +
             index % heads_BHTD.size(1) * heads_BHTD.stride(1)),
        stride(heads_BHTD.stride(2)) {}

  const uint16_t* bits(int64_t row = 0) const { return reinterpret_cast<const uint16_t*>(data + row * stride); }
  Narrow* row(int64_t index) const { return data + index * stride; }
};

struct RoundRows {
  static TROUPE_INLINE void run(const float* from, Narrow* to, int64_t stride, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t i = 0; i < width; i++) store(to + row * stride, i, from[row * width + i]);
    }
  }
};

// Probabilities again, and the gradient of scores before they are scaled, times the scale. Both are 0 from `visible` on.
struct TileSoftmaxBackward {
  static TROUPE_INLINE void run(const float* __restrict scores, const float* __restrict dprobabilities, Narrow* __restrict probabilities,
                                Narrow* __restrict dscores, int64_t visible, int64_t columns, float logsumexp, float dot, float scale) {
    int64_t first = 0;
    // Lanes of a known number: a loop that ends where the visible scores do would leave some to be computed one by one.
    for (; first < visible; first += kSoftmaxLanes) {
      const auto seen_lanes = static_cast<int32_t>(std::min<int64_t>(kSoftmaxLanes, visible - first));
      for (int32_t lane = 0; lane < kSoftmaxLanes; lane++) {
        const int64_t i = first + lane;
        const float seen = exp_f32(scores[i] * scale - logsumexp);
        const float gradient = seen * (dprobabilities[i] - dot) * scale;
        store(probabilities, i, lane < seen_lanes ? seen : 0.0f);
        store(dscores, i, lane < seen_lanes ? gradient : 0.0f);
      }
    }
    std::fill(probabilities + first, probabilities + columns, Narrow(0.0f));
    std::fill(dscores + first, dscores + columns, Narrow(0.0f));
  }
};

struct RowDot {
  static TROUPE_INLINE float run(const Narrow* a, const Narrow* b, int64_t width) {
    return sum_terms<float, kDotLanes>(0, width, [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(a, i) * load(b, i); });
  }
};

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

// The sizes of a call's pieces.
struct HeadSizes {
  int64_t rows, keys, width;
  int64_t all_columns;  // keys, rounded up to 64
  bool causal;

  HeadSizes(const at::Tensor& q, const at::Tensor& k, bool is_causal)
      : rows(q.size(2)), keys(k.size(2)), width(q.size(3)), all_columns(round_up(keys, kQueryRows)), causal(is_causal) {}

  int64_t columns(int64_t first, int64_t count) const {
    return causal ? std::min(all_columns, round_up(first + count, kQueryRows)) : all_columns;
  }
  int64_t visible(int64_t row) const { return causal ? std::min(keys, row + 1) : keys; }
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
    auto* const probabilities = cutter.cut<Narrow>(kQueryRows * columns);
    auto* const sums = cutter.cut<float>(kQueryRows * width);
    pair_widths(HeadMatrix(k, head), sizes, keys);
    pair_keys(HeadMatrix(v, head), sizes, values);
    for (int64_t first = 0; first < sizes.rows; first += kQueryRows) {
      const int64_t count = std::min(kQueryRows, sizes.rows - first), here = sizes.columns(first, count);
      multiply_rows(count, here, width, queries.row(first), queries.stride, keys, columns, scores, false);
      softmax_block(scores, count, here, {options.causal, first}, sizes.keys, options.scale, probabilities,
                    logsumexps + head * sizes.rows + first);
      multiply_rows(count, width, here, probabilities, here, values, width, sums, false);
      run_best<RoundRows>(sums, to.row(first), to.stride, count, width);
    }
  });
}

void attend_in_tiles_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                              const at::Tensor& logsumexp_BHT1, TileAttentionOptions options, const TileAttentionGradients& gradients) {
  const HeadSizes sizes(q, k, options.causal);
  const int64_t columns = sizes.all_columns, width = sizes.width, block = kQueryRows;
  const float* const logsumexps = logsumexp_BHT1.const_data_ptr<float>();
  const int64_t words = columns * width * 3 / 2 + columns * width * 2 + block * columns * 4 + block * width * 3;
  each_head(q, words, [&](int64_t head, Cutter cutter) {
    const HeadMatrix queries(q, head), outs(out, head), upstream(dout, head), dq(gradients.q, head);
    auto* const keys = cutter.cut<uint32_t>(columns / 2 * width);  // in pairs along the width
    auto* const values = cutter.cut<uint32_t>(columns / 2 * width);
    auto* const key_rows = cutter.cut<uint32_t>(columns / 2 * width);  // along the keys
    auto* const dk = cutter.cut<float>(columns * width);
    auto* const dv = cutter.cut<float>(columns * width);
    auto* const scores = cutter.cut<float>(block * columns);
    auto* const dprobabilities = cutter.cut<float>(block * columns);
    auto* const probabilities = cutter.cut<Narrow>(block * columns);
    auto* const dscores = cutter.cut<Narrow>(block * columns);
    auto* const laid = cutter.cut<uint16_t>(block * columns);
    auto* const rows = cutter.cut<uint32_t>(block / 2 * width);
    auto* const sums = cutter.cut<float>(block * width);
    pair_widths(HeadMatrix(k, head), sizes, keys);
    pair_widths(HeadMatrix(v, head), sizes, values);
    pair_keys(HeadMatrix(k, head), sizes, key_rows);
    std::fill(dk, dk + columns * width, 0.0f);
    std::fill(dv, dv + columns * width, 0.0f);
    for (int64_t first = 0; first < sizes.rows; first += block) {
      const int64_t count = std::min(block, sizes.rows - first), here = sizes.columns(first, count), even = count + count % 2;
      multiply_rows(count, here, width, queries.row(first), queries.stride, keys, columns, scores, false);
      multiply_rows(count, here, width, upstream.row(first), upstream.stride, values, columns, dprobabilities, false);
      for (int64_t row = 0; row < count; row++) {
        const int64_t at = row * here;
        const float dot = run_best<RowDot>(upstream.row(first + row), outs.row(first + row), width);
        run_best<TileSoftmaxBackward>(scores + at, dprobabilities + at, probabilities + at, dscores + at, sizes.visible(first + row), here,
                                      logsumexps[head * sizes.rows + first + row], dot, options.scale);
      }
      multiply_rows(count, width, here, dscores, here, key_rows, width, sums, false);
      run_best<RoundRows>(sums, dq.row(first), dq.stride, count, width);
      // Transposed by what made its rows.
      const auto add = [&](const Narrow* of_scores, const HeadMatrix& of_rows, float* to) {
        run_best<LayRows>(reinterpret_cast<const uint16_t*>(of_scores), here, count, here, even, laid);
        run_best<PairRows>(of_rows.bits(first), of_rows.stride, count, width, width, rows);
        multiply_rows(here, width, even, laid, even, rows, width, to, true);
      };
      add(dscores, queries, dk);
      add(probabilities, upstream, dv);
    }
    const HeadMatrix to_keys(gradients.k, head), to_values(gradients.v, head);
    run_best<RoundRows>(dk, to_keys.data, to_keys.stride, sizes.keys, width);
    run_best<RoundRows>(dv, to_values.data, to_values.stride, sizes.keys, width);
  });
}

}  // namespace troupe
