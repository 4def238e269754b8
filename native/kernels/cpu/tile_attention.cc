// The heads that share keys and values are one piece of work. Their keys and values are packed in pairs once; what 64 query rows make then
// stays in the second-level cache until it is used up. Gradients of keys and values are summed over several such blocks at once, in float32.

#include "kernels/cpu/tile_attention.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "core/programs/tile_products.h"
#include "kernels/cpu/attention_rows.h"
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

// The keys that some rows see and those between, by 64: those behind the last one count as hidden.
struct Columns {
  int64_t from, to;
  bool is_blind = false;  // for a row that sees nothing, and so weighs all keys alike

  int64_t count() const { return to - from; }
};

// The sizes of a call's pieces, and what rows see.
struct TileSizes {
  AttentionSizes all;
  const Sight& sight;
  int64_t all_columns;  // keys, rounded up to 64

  TileSizes(const at::Tensor& q, const at::Tensor& k, const Sight& given)
      : all(q, k), sight(given), all_columns(round_up(all.keys, kQueryRows)) {}

  RowSights sights() const { return {all, sight}; }

  // Query rows whose gradients of keys and values are one sum.
  int64_t together() const {
    const int64_t most = std::min(kMaxSummedRows, round_up(all.rows, kQueryRows));
    return std::clamp(kMaxSummedNumel / all_columns / kQueryRows * kQueryRows, kQueryRows, most);
  }
};

// A head's rows.
struct Head {
  const TileSizes& sizes;
  int64_t batch, index;

  // Among all heads, and its group's among all groups.
  int64_t place() const { return batch * sizes.all.heads + index; }
  int64_t group_place() const { return batch * sizes.all.groups + index / sizes.all.readers(); }
  bool ends_group() const { return (index + 1) % sizes.all.readers() == 0; }

  Columns columns(int64_t first, int64_t count) const {
    const RowSights sights = sizes.sights();
    if (sights.any_blind(batch, index, first, count)) return {0, sizes.all_columns, true};
    return {sights.begin(first) / kQueryRows * kQueryRows, round_up(sights.end(first + count - 1), kQueryRows)};
  }

  RowSight sight(int64_t row, Columns columns) const {
    return sizes.sights().of(batch, index, row, columns.from, std::min(columns.to, sizes.all.keys) - columns.from);
  }
};

// Prefetches rows of the next matrix, which lie too far apart for the processor's own prefetcher. Inline, as `Factor::prefetch` is.
TROUPE_INLINE void prefetch_next(std::initializer_list<const at::Tensor*> all_heads, int64_t index, int64_t first, int64_t count) {
  for (const at::Tensor* const heads_BHTD : all_heads) {
    if (index + 1 >= heads_BHTD->size(0) * heads_BHTD->size(1)) return;
    const HeadMatrix next(*heads_BHTD, index + 1);
    const int64_t last = std::min(first + count, heads_BHTD->size(2)), width = heads_BHTD->size(3);
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

// Scales a row's scores, adds the bias and hides what is not seen.
TROUPE_AVX512_BF16 void apply_sight_or_blind(float* scores, const RowSight& sight, float scale) {
  if (sight.blind) std::fill_n(scores, sight.last, 0.0f);
  else apply_sight(scores, sight.last, scale, sight);
}

// The scale that is left to be applied to a row's scores: 1 after a mask, a bias, hidden first keys or a row that sees nothing, which are
// applied here.
TROUPE_INLINE float scale_left(float* scores, const RowSight& sight, float scale) {
  if (!sight.mask && !sight.bias && sight.first == 0 && !sight.blind) return scale;
  apply_sight_or_blind(scores, sight, scale);
  return 1.0f;
}

// The largest of a row's scaled scores, of which `visible` are seen.
TROUPE_AVX512_BF16 float largest_score(const float* scores, int64_t visible, float scale) {
  return max_of<kSoftmaxLanes>(0, visible, kHidden, [&](int64_t i) TROUPE_INLINE_LAMBDA { return scores[i] * scale; });
}

// Factors of a row's probabilities, for this thread; null where nothing is dropped.
const float* drop(const RowSight& sight) {
  if (!sight.dropout) return nullptr;
  static thread_local float factors[kMaxKeys];
  run_best<DropFactors>(factors, sight.last, *sight.dropout);
  return factors;
}

// Exponentials of a row's scaled scores less `largest`, times their factors, 0 from `visible` on. Returns the sum of the exponentials alone,
// before they are rounded.
template <bool kDrops>
TROUPE_AVX512_BF16 float exponentials(const float* scores, const float* factors, Narrow* to, int64_t visible, int64_t columns, float scale,
                                      float largest) {
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
      if constexpr (kDrops) seen[lane] *= factors[first + lane];
    }
    round_numbers(seen, to + first, false);
  }
  std::fill(to + first, to + columns, Narrow(0.0f));
  return sum_lanes(sums);
}

// Softmax of a block's rows, which are still to be multiplied by `factors`.
TROUPE_AVX512_BF16 void tile_softmax(float* scores, Narrow* to, const Head& head, int64_t first, int64_t count, Columns columns,
                                     float* factors, float* logsumexps) {
  RowSight sights[kQueryRows];
  float scales[kQueryRows], largest[kQueryRows], sums[kQueryRows] = {};
  for (int64_t row = 0; row < count; row++) {
    float* const own = scores + row * columns.count();
    sights[row] = head.sight(first + row, columns);
    scales[row] = scale_left(own, sights[row], head.sizes.sight.scale);
    largest[row] = largest_score(own, sights[row].last, scales[row]);
  }
  for (int64_t row = 0; row < count; row++) {
    const int64_t at = row * columns.count();
    const float* const dropped = drop(sights[row]);
    sums[row] = (dropped ? exponentials<true> : exponentials<false>)(scores + at, dropped, to + at, sights[row].last, columns.count(),
                                                                     scales[row], largest[row]);
  }
  for (int64_t row = 0; row < count; row++) factors[row] = 1.0f / sums[row];
  for (int64_t row = 0; row < count; row++) logsumexps[row] = largest[row] + log_f32(sums[row]);
}

TROUPE_AVX512_BF16 float row_dot(const Narrow* a, const Narrow* b, int64_t width) {
  return sum_terms<float, kDotLanes>(0, width, [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(a, i) * load(b, i); });
}

// Probabilities again, times their factors, and the gradient of scores before they are scaled, times `scale`. Both are 0 from `visible` on.
// Scores are still to be multiplied by `left`.
template <bool kDrops>
TROUPE_AVX512_BF16 void row_backward(const float* scores, const float* dprobabilities, const float* factors, Narrow* probabilities,
                                     Narrow* dscores, int64_t visible, int64_t columns, float left, float logsumexp, float dot, float scale) {
  int64_t first = 0;
  for (; first < visible; first += kSoftmaxLanes) {
    const auto seen_lanes = static_cast<int32_t>(std::min<int64_t>(kSoftmaxLanes, visible - first));
    float seen[kSoftmaxLanes], gradients[kSoftmaxLanes];
    for (int32_t lane = 0; lane < kSoftmaxLanes; lane++) {
      const int64_t i = first + lane;
      const float probability = exp_f32(fmaf(scores[i], left, -logsumexp));
      const float dprobability = kDrops ? dprobabilities[i] * factors[i] : dprobabilities[i];
      const float gradient = probability * (dprobability - dot) * scale;
      seen[lane] = lane < seen_lanes ? (kDrops ? probability * factors[i] : probability) : 0.0f;
      gradients[lane] = lane < seen_lanes ? gradient : 0.0f;
    }
    round_numbers(seen, probabilities + first, false);
    round_numbers(gradients, dscores + first, false);
  }
  std::fill(probabilities + first, probabilities + columns, Narrow(0.0f));
  std::fill(dscores + first, dscores + columns, Narrow(0.0f));
}

// The rows of a block in backward: scores and gradients of probabilities lie without gaps, what is made of them at `stride`.
struct BackwardRows {
  float* scores;
  const float* dprobabilities;
  const float* logsumexps;
  Narrow *probabilities, *dscores;
  int64_t stride;
};

TROUPE_AVX512_BF16 void tile_softmax_backward(const BackwardRows& rows, const HeadMatrix& upstream, const HeadMatrix& outs, const Head& head,
                                              int64_t first, int64_t count, Columns columns) {
  const float scale = head.sizes.sight.scale;
  const int64_t width = head.sizes.all.width;
  for (int64_t row = 0; row < count; row++) {
    const int64_t from = row * columns.count(), to = row * rows.stride;
    const RowSight sight = head.sight(first + row, columns);
    const float left = scale_left(rows.scores + from, sight, scale);
    const float dot = row_dot(upstream.row(first + row), outs.row(first + row), width);
    const float* const dropped = drop(sight);
    (dropped ? row_backward<true> : row_backward<false>)(rows.scores + from, rows.dprobabilities + from, dropped, rows.probabilities + to,
                                                         rows.dscores + to, sight.last, columns.count(), left, rows.logsumexps[row], dot, scale);
  }
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
void pair_keys(const HeadMatrix& from, const TileSizes& sizes, uint32_t* to) {
  run_best<PairRows>(from.bits(), from.stride, sizes.all.keys, sizes.all.width, sizes.all.width, to);
  std::fill(to + (sizes.all.keys + 1) / 2 * sizes.all.width, to + sizes.all_columns / 2 * sizes.all.width, 0u);
}

// The same along the width: [width / 2][all_columns].
void pair_widths(const HeadMatrix& from, const TileSizes& sizes, uint32_t* to) {
  run_best<PairColumns>(from.bits(), from.stride, sizes.all.width, sizes.all.keys, sizes.all_columns, to);
}

// Calls body(batch, group, scratch) for each group of heads, in parallel. `words`: of scratch.
template <class Body>
void each_group(const AttentionSizes& sizes, int64_t words, const Body& body) {
  at::parallel_for(0, sizes.batches * sizes.groups, 1, [&](int64_t first, int64_t last) {
    uint32_t* const memory = scratch<uint32_t, TileSizes>(static_cast<size_t>(words) + 64 / sizeof(uint32_t));
    auto* const aligned = reinterpret_cast<uint32_t*>(round_up(reinterpret_cast<int64_t>(memory), 64));
    for (int64_t piece = first; piece < last; piece++) body(piece / sizes.groups, piece % sizes.groups, Cutter(aligned));
    at::native::cpublas::brgemm_release();
    fence_streams();
  });
}

bool has_head_rows(const at::Tensor& heads) { return heads.is_cpu() && heads.scalar_type() == at::kBFloat16 && heads.stride(3) == 1; }

// The tensors of a call of backward.
struct BackwardTensors {
  const at::Tensor &q, &k, &v;
  const Attended& attended;
  const at::Tensor& dout;
  const AttentionGradients& gradients;
};

// Backward of the heads that share keys and values.
class GroupBackward {
 public:
  // The scratch that it needs.
  static int64_t words(const TileSizes& sizes) {
    const int64_t columns = sizes.all_columns, width = sizes.all.width, together = sizes.together();
    return columns * width * 7 / 2 + kQueryRows * (columns * 2 + width) + together * (columns + width + kQueryRows / 2);
  }

  GroupBackward(const TileSizes& sizes, const BackwardTensors& of, int64_t batch, int64_t group, Cutter cutter)
      : sizes_(sizes),
        of_(of),
        batch_(batch),
        group_(group),
        keys_(cutter.cut<uint32_t>(columns_ / 2 * width_)),
        values_(cutter.cut<uint32_t>(columns_ / 2 * width_)),
        key_rows_(cutter.cut<uint32_t>(columns_ / 2 * width_)),
        dk_(cutter.cut<float>(columns_ * width_)),
        dv_(cutter.cut<float>(columns_ * width_)),
        scores_(cutter.cut<float>(kQueryRows * columns_)),
        dprobabilities_(cutter.cut<float>(kQueryRows * columns_)),
        sums_(cutter.cut<float>(kQueryRows * width_)),
        probabilities_(cutter.cut<Narrow>(together_ * columns_)),
        dscores_(cutter.cut<Narrow>(together_ * columns_)),
        packed_(cutter.cut<uint16_t>(kQueryRows * together_)),
        query_rows_(cutter.cut<uint32_t>(together_ / 2 * width_)),
        upstream_rows_(cutter.cut<uint32_t>(together_ / 2 * width_)) {}

  void run() {
    const int64_t place = batch_ * sizes_.all.groups + group_;
    pair_widths(HeadMatrix(of_.k, place), sizes_, keys_);
    pair_widths(HeadMatrix(of_.v, place), sizes_, values_);
    pair_keys(HeadMatrix(of_.k, place), sizes_, key_rows_);
    const int64_t readers = sizes_.all.readers();
    for (int64_t reader = 0; reader < readers; reader++) walk_head({sizes_, batch_, group_ * readers + reader});
    for (int64_t key = 0; key < columns_; key += kQueryRows) {
      if (has_sum(key)) continue;
      std::fill_n(dk_ + key * width_, kQueryRows * width_, 0.0f);
      std::fill_n(dv_ + key * width_, kQueryRows * width_, 0.0f);
    }
    round_rows(dk_, nullptr, HeadMatrix(of_.gradients.k, place), 0, sizes_.all.keys, width_);
    round_rows(dv_, nullptr, HeadMatrix(of_.gradients.v, place), 0, sizes_.all.keys, width_);
  }

 private:
  // Query rows whose gradients of keys and values are one sum: those of each 64 see `columns`.
  struct SummedRows {
    int64_t begin, count;
    std::array<Columns, kMaxSummedRows / kQueryRows> columns;
  };

  bool& has_sum(int64_t key) { return has_sum_[static_cast<size_t>(key / kQueryRows)]; }

  void walk_head(const Head& head) {
    for (int64_t begin = 0; begin < sizes_.all.rows; begin += together_) {
      SummedRows rows{begin, std::min(together_, sizes_.all.rows - begin), {}};
      const Columns all = head.columns(begin, rows.count);
      for (int64_t row = 0; row < rows.count; row += kQueryRows) {
        const int64_t count = std::min(kQueryRows, rows.count - row);
        // They begin alike and end no earlier than those before, so that sums of keys have no gaps.
        Columns& here = rows.columns[static_cast<size_t>(row / kQueryRows)];
        here = {all.from, all.is_blind ? all.to : head.columns(begin + row, count).to};
        walk_rows(head, begin + row, count, here, row * columns_ + here.from);
      }
      sum_keys(head, rows, all);
    }
  }

  // Probabilities and the gradient of scores of up to 64 rows, written from element `at` on; and the gradient of their queries.
  void walk_rows(const Head& head, int64_t first, int64_t count, Columns here, int64_t at) {
    const int64_t index = head.place();
    const HeadMatrix queries(of_.q, index), outs(of_.attended.out_BHTD, index), upstream(of_.dout, index), dq(of_.gradients.q, index);
    prefetch_next({&of_.q, &of_.dout, &of_.attended.out_BHTD}, index, first, count);
    if (head.ends_group()) prefetch_next({&of_.k, &of_.v}, head.group_place(), first, count);
    multiply_rows(count, here.count(), width_, queries.row(first), queries.stride, keys_ + here.from, columns_, scores_, false);
    multiply_rows(count, here.count(), width_, upstream.row(first), upstream.stride, values_ + here.from, columns_, dprobabilities_, false);
    const float* const logsumexps = of_.attended.logsumexp_BHT1.const_data_ptr<float>() + index * sizes_.all.rows + first;
    tile_softmax_backward({scores_, dprobabilities_, logsumexps, probabilities_ + at, dscores_ + at, columns_}, upstream, outs, head, first, count,
                          here);
    multiply_rows(count, width_, here.count(), dscores_ + at, columns_, key_rows_ + here.from / 2 * width_, width_, sums_, false);
    round_rows(sums_, nullptr, dq, first, count, width_);
  }

  // Adds what rows give to the gradients of the keys and values that they see.
  void sum_keys(const Head& head, const SummedRows& rows, Columns all) {
    const HeadMatrix queries(of_.q, head.place()), upstream(of_.dout, head.place());
    run_best<PairRows>(queries.bits(rows.begin), queries.stride, rows.count, width_, width_, query_rows_);
    run_best<PairRows>(upstream.bits(rows.begin), upstream.stride, rows.count, width_, width_, upstream_rows_);
    int64_t skipped = 0;  // rows before the first that have the keys
    for (int64_t key = all.from; key < all.to; key += kQueryRows) {
      while (rows.columns[static_cast<size_t>(skipped / kQueryRows)].to <= key) skipped += kQueryRows;
      add_sum(dscores_ + skipped * columns_ + key, query_rows_ + skipped / 2 * width_, rows.count - skipped, dk_ + key * width_, has_sum(key));
      add_sum(probabilities_ + skipped * columns_ + key, upstream_rows_ + skipped / 2 * width_, rows.count - skipped, dv_ + key * width_,
              has_sum(key));
      has_sum(key) = true;
    }
  }

  void add_sum(const Narrow* of_scores, const uint32_t* rows, int64_t num_rows, float* to, bool adds) {
    const int64_t even = num_rows + num_rows % 2;
    run_best<PackTransposedRows>(reinterpret_cast<const uint16_t*>(of_scores), columns_, num_rows, kQueryRows, even, packed_);
    multiply_rows(kQueryRows, width_, even, packed_, even, rows, width_, to, adds);
  }

  const TileSizes& sizes_;
  const BackwardTensors& of_;
  const int64_t batch_, group_;
  const int64_t columns_ = sizes_.all_columns, width_ = sizes_.all.width, together_ = sizes_.together();
  uint32_t *const keys_, *const values_;                      // in pairs along the width
  uint32_t* const key_rows_;                                  // along the keys
  float *const dk_, *const dv_;                               // sums over rows and heads
  std::array<bool, kMaxKeys / kQueryRows> has_sum_ = {};      // of 64 keys
  float *const scores_, *const dprobabilities_, *const sums_;
  Narrow *const probabilities_, *const dscores_;
  uint16_t* const packed_;
  uint32_t *const query_rows_, *const upstream_rows_;
};

}  // namespace

bool attends_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (!wants_tile_products() || !has_head_rows(q) || !has_head_rows(k) || !has_head_rows(v)) return false;
  const int64_t width = q.size(3), keys = k.size(2);
  return width % 32 == 0 && width <= kMaxWidth && keys <= kMaxKeys && q.size(2) > 0 && keys > 0;
}

Attended attend_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight) {
  const TileSizes sizes(q, k, sight);
  const int64_t columns = sizes.all_columns, width = sizes.all.width, readers = sizes.all.readers();
  const Attended attended{projected_heads(q.sizes(), q.options()),
                          at::empty({q.size(0), q.size(1), q.size(2), 1}, q.options().dtype(at::kFloat))};
  float* const logsumexps = attended.logsumexp_BHT1.mutable_data_ptr<float>();
  const auto attend_head = [&](const Head& head, const uint32_t* keys, const uint32_t* values, Cutter cutter) {
    const int64_t index = head.place();
    const HeadMatrix queries(q, index), to(attended.out_BHTD, index);
    auto* const scores = cutter.cut<float>(kQueryRows * columns);
    auto* const seen = cutter.cut<Narrow>(kQueryRows * columns);
    auto* const sums = cutter.cut<float>(kQueryRows * width);
    for (int64_t first = 0; first < sizes.all.rows; first += kQueryRows) {
      const int64_t count = std::min(kQueryRows, sizes.all.rows - first);
      const Columns here = head.columns(first, count);
      prefetch_next({&q}, index, first, count);
      if (head.ends_group()) prefetch_next({&k, &v}, head.group_place(), first, count);
      multiply_rows(count, here.count(), width, queries.row(first), queries.stride, keys + here.from, columns, scores, false);
      float factors[kQueryRows];
      tile_softmax(scores, seen, head, first, count, here, factors, logsumexps + index * sizes.all.rows + first);
      multiply_rows(count, width, here.count(), seen, here.count(), values + here.from / 2 * width, width, sums, false);
      round_rows(sums, factors, to, first, count, width);
    }
  };
  each_group(sizes.all, columns * width + kQueryRows * (columns * 3 / 2 + width), [&](int64_t batch, int64_t group, Cutter cutter) {
    const int64_t piece = batch * sizes.all.groups + group;
    auto* const keys = cutter.cut<uint32_t>(columns / 2 * width);
    auto* const values = cutter.cut<uint32_t>(columns / 2 * width);
    pair_widths(HeadMatrix(k, piece), sizes, keys);
    pair_keys(HeadMatrix(v, piece), sizes, values);
    for (int64_t reader = 0; reader < readers; reader++) attend_head({sizes, batch, group * readers + reader}, keys, values, cutter);
  });
  return attended;
}

AttentionGradients attend_in_tiles_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                            const Attended& attended, const Sight& sight) {
  const TileSizes sizes(q, k, sight);
  const at::Tensor dense = dout.stride(3) == 1 ? dout : dout.contiguous();
  const AttentionGradients gradients{projected_heads(q.sizes(), q.options()), projected_heads(k.sizes(), k.options()),
                                     projected_heads(v.sizes(), v.options())};
  const BackwardTensors tensors{q, k, v, attended, dense, gradients};
  each_group(sizes.all, GroupBackward::words(sizes),
             [&](int64_t batch, int64_t group, Cutter cutter) { GroupBackward(sizes, tensors, batch, group, cutter).run(); });
  return gradients;
}

}  // namespace troupe
