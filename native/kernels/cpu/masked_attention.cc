// Attention in which rows differ in what they see: a mask, a bias that has a gradient, a window, heads in groups that share
// keys and values, more or fewer keys than queries. As in attention.cc scores exist for a few heads and rows at a time, and
// are made again in backward. Keys that no row of a block may see take no part in its products.
//
// q [B,H,T,D]; k and v [B,G,S,D], H a multiple of G: query head h reads head h * G / H. Query t stands beside key t + S - T.
// A query that sees nothing gets the mean of all values, which is what scores lowered by a large number give.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>

#include "core/autograd/differentiable.h"
#include "core/invariance.h"
#include "kernels/cpu/add_range.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/invariant_attention.h"
#include "kernels/cpu/tile_attention.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kProductRows = 128;                    // of a block, over the query heads of a group
constexpr int64_t kScoresAtATime = int64_t{1} << 20;     // float32: 4 MiB

bool spans(const at::Tensor& given, const AttentionSizes& sizes) {
  const int64_t wanted[] = {sizes.batches, sizes.heads, sizes.rows};
  if (given.dim() != 4 || given.size(3) != sizes.keys) return false;
  for (int dim = 0; dim < 3; dim++) {
    if (given.size(dim) != 1 && given.size(dim) != wanted[dim]) return false;
  }
  return true;
}

void check_masked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const c10::optional<at::Tensor>& mask,
                  const c10::optional<at::Tensor>& bias, int64_t window) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(3) == k.size(3) &&
                  k.size(1) > 0 && q.size(1) % k.size(1) == 0,
              "[masked_attention] expected q to be [batch, heads, time, width], k and v [batch, groups, keys, width] with groups that "
              "divide the heads, got ", q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
                  with_float_type(q.scalar_type(), [](auto*) {}),
              "[masked_attention] expected q, k and v all to be float32, bfloat16 or float16, got ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
  const AttentionSizes sizes(q, k);
  TORCH_CHECK(!mask || (mask->scalar_type() == at::kBool && spans(*mask, sizes)),
              "[masked_attention] expected mask to be bool [batch or 1, heads or 1, time or 1, keys], got ",
              mask ? mask->sizes() : at::IntArrayRef());
  TORCH_CHECK(!bias || (bias->is_floating_point() && spans(*bias, sizes)),
              "[masked_attention] expected bias to be floating [batch or 1, heads or 1, time or 1, keys], got ",
              bias ? bias->sizes() : at::IntArrayRef());
  TORCH_CHECK(window >= 0, "[masked_attention] expected window not to be negative, got ", window);
}

// Some batches and groups of heads, some query rows, and the keys that one of these sees.
struct Block {
  RowSights sights;
  int64_t first_batch, num_batches;
  int64_t first_group, num_groups;
  int64_t first_row, num_rows;
  int64_t first_key = 0, num_keys = 0;

  int64_t num_heads() const { return num_groups * sights.sizes.readers(); }
  int64_t first_head() const { return first_group * sights.sizes.readers(); }

  void choose_keys() {
    first_key = sights.begin(first_row);
    num_keys = std::max<int64_t>(0, sights.end(first_row + num_rows - 1) - first_key);
    if (!any_blind()) return;
    first_key = 0;
    num_keys = sights.sizes.keys;
  }

  // Row `index` of the block's scores, counted over batches, heads and rows.
  RowSight of(int64_t index) const {
    const int64_t head = first_head() + index / num_rows % num_heads();
    const int64_t batch = first_batch + index / num_rows / num_heads();
    return sights.of(batch, head, first_row + index % num_rows, first_key, num_keys);
  }

  at::Tensor queries(const at::Tensor& x_BHTD) const {
    return x_BHTD.narrow(0, first_batch, num_batches).narrow(1, first_head(), num_heads()).narrow(2, first_row, num_rows);
  }
  at::Tensor keys(const at::Tensor& x_BGSD) const {
    return x_BGSD.narrow(0, first_batch, num_batches).narrow(1, first_group, num_groups).narrow(2, first_key, num_keys);
  }

 private:
  bool any_blind() const {
    const at::Tensor& mask = sights.sight.mask;
    const int64_t mask_heads = mask.defined() && mask.size(1) > 1 ? num_heads() : 1;
    for (int64_t batch = first_batch; batch < first_batch + num_batches; batch++) {
      for (int64_t head = first_head(); head < first_head() + mask_heads; head++) {
        if (sights.any_blind(batch, head, first_row, num_rows)) return true;
      }
    }
    return false;
  }
};

int64_t rows_of_block(const AttentionSizes& sizes) {
  return std::min(sizes.rows, std::max<int64_t>(8, kProductRows / sizes.readers()));
}

// Whether every key is one block's, and of no other.
bool one_block_has_all(const AttentionSizes& sizes, const Sight& sight) {
  const RowSights sights{sizes, sight};
  return rows_of_block(sizes) == sizes.rows && sights.begin(0) == 0 && sights.end(sizes.rows - 1) == sizes.keys;
}

template <class Body>
void each_block(const AttentionSizes& sizes, const Sight& sight, const Body& body) {
  const int64_t block_rows = rows_of_block(sizes);
  const int64_t scores = std::max<int64_t>(1, sizes.readers() * block_rows * sizes.keys);
  const int64_t at_a_time = std::max<int64_t>(1, kScoresAtATime / scores);  // groups, over batches
  const int64_t some_groups = std::min(at_a_time, sizes.groups);
  const int64_t some_batches = std::max<int64_t>(1, at_a_time / sizes.groups);
  for (int64_t batch = 0; batch < sizes.batches; batch += some_batches) {
    for (int64_t group = 0; group < sizes.groups; group += some_groups) {
      for (int64_t row = 0; row < sizes.rows; row += block_rows) {
        Block block{{sizes, sight},
                    batch,
                    std::min(some_batches, sizes.batches - batch),
                    group,
                    std::min(some_groups, sizes.groups - group),
                    row,
                    std::min(block_rows, sizes.rows - row)};
        block.choose_keys();
        body(block);
      }
    }
  }
}

// A copy of a cut [B,N,R,D] in the dtype given, its leading dims joined: what products take. N heads of one group make one
// matrix of their rows.
at::Tensor packed(const Block& block, const at::Tensor& cut, at::ScalarType dtype) {
  const int64_t matrices = block.num_batches * block.num_groups;
  return pack_heads(cut, dtype).view({matrices, cut.size(0) * cut.size(1) * cut.size(2) / matrices, cut.size(3)});
}

at::Tensor packed_queries(const Block& block, const at::Tensor& x) {
  return packed(block, block.queries(x), x.scalar_type());
}

at::Tensor packed_keys(const Block& block, const at::Tensor& x) { return packed(block, block.keys(x), x.scalar_type()); }

// [batches * heads, rows, keys] of what products made for groups.
at::Tensor by_heads(const Block& block, const at::Tensor& of_groups) {
  return of_groups.view({block.num_batches * block.num_heads(), block.num_rows, of_groups.size(2)});
}

at::Tensor by_groups(const Block& block, const at::Tensor& of_heads) {
  return of_heads.view({block.num_batches * block.num_groups, -1, of_heads.size(2)});
}

// Float32 products of what was packed.
at::Tensor block_scores(const Block& block, const at::Tensor& queries, const at::Tensor& keys) {
  return by_heads(block, at::bmm(queries.to(at::kFloat), keys.to(at::kFloat).transpose(1, 2)).contiguous());
}

Attended attend_masked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight) {
  const AttentionSizes sizes(q, k);
  const at::TensorOptions float_options = q.options().dtype(at::kFloat);
  const Attended result{projected_heads(q.sizes(), q.options()),
                              at::empty({sizes.batches, sizes.heads, sizes.rows, 1}, float_options)};
  if (sizes.keys == 0) result.out_BHTD.zero_();
  if (sizes.keys == 0 || q.numel() == 0) return result;
  if (is_invariant() && !sight.dropout) {
    check_invariant_attention(sight.mask);
    return attend_invariantly(q, k, v, sight.mask, sight.bias, sight.causal, sight.window, sight.scale);
  }
  each_block(sizes, sight, [&](const Block& block) {
    const at::Tensor scores = block_scores(block, packed_queries(block, q), packed_keys(block, k));
    const at::Tensor probabilities = at::empty(scores.sizes(), q.options());
    const at::Tensor logsumexp = at::empty({scores.size(0), block.num_rows}, float_options);
    softmax_sighted_rows(scores, [&](int64_t row) { return block.of(row); }, sight.scale, probabilities, logsumexp);
    const at::Tensor mixed = at::bmm(by_groups(block, probabilities), packed_keys(block, v));
    unpack_heads(mixed, block.queries(result.out_BHTD));
    unpack_heads(logsumexp, block.queries(result.logsumexp_BHT1));
  });
  return result;
}

// Adds the gradient of a block's biased scores to that of the bias: rows that share one are added in order of batches and
// heads, on one thread.
void add_to_bias(const Block& block, const at::Tensor& dbiased_GRC, const at::Tensor& dbias) {
  const auto* from = dbiased_GRC.data_ptr<float>();
  const int64_t grain = dbias.size(2) == 1 ? block.num_rows : grain_rows(dbiased_GRC.size(0) * block.num_keys);
  at::parallel_for(0, block.num_rows, grain, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++) {
      for (int64_t index = 0; index < dbiased_GRC.size(0); index++) {
        const int64_t batch = block.first_batch + index / block.num_heads();
        const int64_t head = block.first_head() + index % block.num_heads();
        float* to = row_of<float>(dbias, batch, head, block.first_row + row) + block.first_key;
        add_range(to, from + (index * block.num_rows + row) * block.num_keys, block.num_keys, true);
      }
    }
  });
}

// The gradients of q, k, v and, where it is wanted, the bias, which is float32.
Tensors attend_masked_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const Attended& saved, const Sight& sight, bool wants_bias) {
  const AttentionSizes sizes(q, k);
  const at::TensorOptions float_options = q.options().dtype(at::kFloat);
  const at::Tensor dq = projected_heads(q.sizes(), q.options());
  const bool once = sizes.keys != 0 && q.numel() != 0 && one_block_has_all(sizes, sight);
  KeyGradients dk(k, once), dv(v, once);
  const at::Tensor dbias = wants_bias ? at::zeros(sight.bias.sizes(), float_options) : at::Tensor();
  if (sizes.keys == 0) dq.zero_();
  if (sizes.keys != 0 && q.numel() != 0) each_block(sizes, sight, [&](const Block& block) {
    const at::Tensor block_q = packed_queries(block, q), block_k = packed_keys(block, k);
    const at::Tensor block_dout = packed_queries(block, dout);
    const at::Tensor dots = row_dots(block.queries(dout), block.queries(saved.out_BHTD));
    const at::Tensor scores = block_scores(block, block_q, block_k);
    const at::Tensor dscores =
        by_heads(block, at::bmm(block_dout, packed_keys(block, v).transpose(1, 2)).contiguous());
    const at::Tensor probabilities = at::empty_like(dscores);
    const at::Tensor dbiased = wants_bias ? at::empty(dscores.sizes(), float_options) : at::Tensor();
    const at::Tensor logsumexp = packed_queries(block, saved.logsumexp_BHT1);
    softmax_sighted_rows_backward(scores, [&](int64_t row) { return block.of(row); }, sight.scale, logsumexp, dots,
                                  probabilities, dscores, dbiased);
    const at::Tensor of_groups = by_groups(block, dscores);
    unpack_heads(at::bmm(of_groups, block_k), block.queries(dq));
    dk.add(at::bmm(of_groups.transpose(1, 2), block_q), block.keys(dk.sums()));
    dv.add(at::bmm(by_groups(block, probabilities).transpose(1, 2), block_dout), block.keys(dv.sums()));
    if (wants_bias) add_to_bias(block, dbiased, dbias);
  });
  return {dq, dk.rounded(), dv.rounded(), dbias};
}

Sight sight_of(const c10::optional<at::Tensor>& mask, const c10::optional<at::Tensor>& bias, bool causal, int64_t window,
               double scale) {
  return {mask ? mask->contiguous() : at::Tensor(), bias ? bias->detach().to(at::kFloat).contiguous() : at::Tensor(), causal,
          window, static_cast<float>(scale)};
}

// `sight` is made where nothing is recorded.
template <class MakeSight>
at::Tensor attend_recorded(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const c10::optional<at::Tensor>& bias, const MakeSight& make_sight) {
  const bool wants_bias = bias && wants_gradient({*bias});
  const bool in_tiles = !is_invariant() && !wants_bias && attends_in_tiles(q, k, v);
  const at::ScalarType bias_dtype = bias ? bias->scalar_type() : at::kFloat;
  Sight sight;
  const Attended attended = without_recording([&] {
    sight = make_sight();
    return in_tiles ? attend_in_tiles(q, k, v, sight) : attend_masked(q, k, v, sight);
  });
  const Sight given{at::Tensor(), at::Tensor(), sight.causal, sight.window, sight.scale, sight.dropout};
  record(op, {q, k, v, bias.value_or(at::Tensor())}, {attended.out_BHTD},
         {q, k, v, attended.out_BHTD, attended.logsumexp_BHT1, sight.mask, sight.bias},
         [given, wants_bias, in_tiles, bias_dtype](const Tensors& gradients, const Tensors& saved) -> Tensors {
           Sight seen = given;
           seen.mask = saved[5];
           seen.bias = saved[6];
           const Attended attended{saved[3], saved[4]};
           if (in_tiles) {
             const AttentionGradients d = attend_in_tiles_backward(gradients[0], saved[0], saved[1], saved[2], attended, seen);
             return {d.q, d.k, d.v, at::Tensor()};
           }
           Tensors d = attend_masked_backward(gradients[0], saved[0], saved[1], saved[2], attended, seen, wants_bias);
           if (wants_bias) d[3] = d[3].to(bias_dtype);
           return d;
         });
  return attended.out_BHTD;
}

at::Tensor attend_seen(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const c10::optional<at::Tensor>& mask,
                       const c10::optional<at::Tensor>& bias, bool causal, int64_t window, double scale) {
  return attend_recorded("masked_attention", q, k, v, bias,
                         [&] { return sight_of(mask, bias, causal, window, scale); });
}

TROUPE_KERNEL(masked_attention, attend_seen);

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const c10::optional<at::Tensor>& mask, const c10::optional<at::Tensor>& bias, bool causal,
                            int64_t window, double scale) {
  check_masked(q, k, v, mask, bias, window);
  return masked_attention_kernel(q, k, v, mask, bias, causal, window, scale);
}

Sight dropped_sight(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const c10::optional<at::Tensor>& mask,
                    const c10::optional<at::Tensor>& bias, bool causal, int64_t window, double scale, double p,
                    int64_t seed, int64_t stream, DropoutPlaces places) {
  check_masked(q, k, v, mask, bias, window);
  check_dropout("dropped_attention", p, places);
  TORCH_CHECK(k.size(2) == 0 || places.run % k.size(2) == 0,
              "[dropped_attention] expected run to be full rows of ", k.size(2), " keys, got ", places.run);
  TORCH_CHECK(!q.is_cuda(), "[dropped_attention] expected q to be on the host, got ", q.device());
  Sight sight = sight_of(mask, bias, causal, window, scale);
  sight.dropout = WeightDropout{DropoutMask::of(p, seed, stream), places};
  return sight;
}

at::Tensor dropped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const c10::optional<at::Tensor>& mask, const c10::optional<at::Tensor>& bias, bool causal,
                             int64_t window, double scale, double p, int64_t seed, int64_t stream, int64_t offset,
                             int64_t run, int64_t stride) {
  return attend_recorded("dropped_attention", q, k, v, bias, [&] {
    return dropped_sight(q, k, v, mask, bias, causal, window, scale, p, seed, stream, {offset, run, stride});
  });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def(
      "masked_attention(Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor? bias, bool causal, int window, float scale) -> "
      "Tensor");
  m.def(
      "dropped_attention(Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor? bias, bool causal, int window, float scale, "
      "float p, int seed, int stream, int offset, int run, int stride) -> Tensor");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) {
  m.impl("masked_attention", masked_attention);
  m.impl("dropped_attention", dropped_attention);
}

}  // namespace troupe
