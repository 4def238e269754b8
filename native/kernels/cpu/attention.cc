// softmax(scale * q k^T) v on large matrix products. libtorch's fused CPU attention multiplies tiles too small for a
// bfloat16 product to be fast; here a few heads and 128 query rows at a time go to batched products, and a causal block
// never reads the keys after its last row. Scores are float32; only logsumexp is kept for backward, which computes the scores
// again (Dao et al. 2022, https://arxiv.org/abs/2205.14135). q [B,H,T,D], k and v [B,H,S,D], any strides.

#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>

#include "core/autograd/differentiable.h"
#include "core/invariance.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/invariant_attention.h"
#include "kernels/cpu/tile_attention.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kBlockRows = 128;
constexpr int64_t kMaxScores = int64_t{1} << 20;  // float32 scores at a time: 4 MiB

void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
  TORCH_CHECK(q.dim() == 4 && k.sizes() == v.sizes() && k.dim() == 4 && q.size(0) == k.size(0) && q.size(1) == k.size(1) &&
                  q.size(3) == k.size(3),
              "[attention] expected q, k and v to be [batch, heads, time, width] with equal batch, heads and width, got ",
              q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  TORCH_CHECK(!causal || q.size(2) == k.size(2), "[attention] expected causal attention to have as many queries as keys, got ",
              q.size(2), " and ", k.size(2));
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
                  with_float_type(q.scalar_type(), [](auto*) {}),
              "[attention] expected q, k and v all to be float32, bfloat16 or float16, got ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
}

// A piece of the work: some batches and heads, some query rows, and the keys that these may see.
struct Piece {
  int64_t first_batch, num_batches;
  int64_t first_head, num_heads;
  int64_t first_row, num_rows;
  int64_t num_keys;

  at::Tensor queries(const at::Tensor& x_BHTD) const { return cut(x_BHTD, first_row, num_rows); }
  at::Tensor keys(const at::Tensor& x_BHSD) const { return cut(x_BHSD, 0, num_keys); }

 private:
  at::Tensor cut(const at::Tensor& x, int64_t first, int64_t count) const {
    return x.narrow(0, first_batch, num_batches).narrow(1, first_head, num_heads).narrow(2, first, count);
  }
};

template <class Body>
void each_piece(const at::Tensor& q, const at::Tensor& k, bool causal, const Body& body) {
  const int64_t batches = q.size(0), heads = q.size(1), rows = q.size(2), keys = k.size(2);
  const int64_t block_rows = std::min(kBlockRows, rows);
  const int64_t group = std::max<int64_t>(1, kMaxScores / std::max<int64_t>(1, block_rows * keys));
  const int64_t some_heads = std::min(group, heads);
  const int64_t some_batches = std::max<int64_t>(1, group / std::max<int64_t>(1, heads));
  for (int64_t batch = 0; batch < batches; batch += some_batches) {
    for (int64_t head = 0; head < heads; head += some_heads) {
      for (int64_t row = 0; row < rows; row += block_rows) {
        const int64_t num_rows = std::min(block_rows, rows - row);
        body(Piece{batch, std::min(some_batches, batches - batch), head, std::min(some_heads, heads - head), row, num_rows,
                   causal ? row + num_rows : keys});
      }
    }
  }
}

at::Tensor pack(const at::Tensor& cut) { return pack_heads(cut, cut.scalar_type()); }

// Float32 products of what was packed: [G,R,D] and [G,C,D] → [G,R,C].
at::Tensor scores_of(const at::Tensor& queries, const at::Tensor& keys) {
  return at::bmm(queries.to(at::kFloat), keys.to(at::kFloat).transpose(1, 2)).contiguous();
}

Attended attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight, bool in_tiles) {
  if (is_invariant()) return attend_invariantly(q, k, v, {}, {}, sight.causal, 0, sight.scale);
  if (in_tiles) return attend_in_tiles(q, k, v, sight);
  const at::TensorOptions float_options = q.options().dtype(at::kFloat);
  const Attended result{projected_heads(q.sizes(), q.options()),
                        at::empty({q.size(0), q.size(1), q.size(2), 1}, float_options)};
  each_piece(q, k, sight.causal, [&](const Piece& piece) {
    const at::Tensor scores = scores_of(pack_heads(piece.queries(q), at::kFloat), pack_heads(piece.keys(k), at::kFloat));
    const at::Tensor probabilities = at::empty(scores.sizes(), q.options());
    const at::Tensor logsumexp = at::empty({scores.size(0), piece.num_rows}, float_options);
    softmax_rows(scores, {sight.causal, piece.first_row}, sight.scale, probabilities, logsumexp);
    unpack_heads(at::bmm(probabilities, pack(piece.keys(v))), piece.queries(result.out_BHTD));
    unpack_heads(logsumexp, piece.queries(result.logsumexp_BHT1));
  });
  return result;
}

AttentionGradients attend_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const Attended& saved, const Sight& sight, bool in_tiles) {
  if (in_tiles) return attend_in_tiles_backward(dout, q, k, v, saved, sight);
  const at::Tensor dq = projected_heads(q.sizes(), q.options());
  KeyGradients dk(k, q.size(2) <= kBlockRows), dv(v, q.size(2) <= kBlockRows);
  each_piece(q, k, sight.causal, [&](const Piece& piece) {
    const at::Tensor packed_q = pack(piece.queries(q)), packed_k = pack(piece.keys(k));
    const at::Tensor packed_dout = pack(piece.queries(dout));
    const at::Tensor dots = row_dots(piece.queries(dout), piece.queries(saved.out_BHTD));
    const at::Tensor scores = scores_of(packed_q, packed_k);
    const at::Tensor dscores = at::bmm(packed_dout, pack(piece.keys(v)).transpose(1, 2)).contiguous();
    const at::Tensor probabilities = at::empty_like(dscores);
    softmax_rows_backward(scores, {sight.causal, piece.first_row}, sight.scale,
                          pack(piece.queries(saved.logsumexp_BHT1)), dots, probabilities, dscores);
    unpack_heads(at::bmm(dscores, packed_k), piece.queries(dq));
    dk.add(at::bmm(dscores.transpose(1, 2), packed_q), piece.keys(dk.sums()));
    dv.add(at::bmm(probabilities.transpose(1, 2), packed_dout), piece.keys(dv.sums()));
  });
  return {dq, dk.rounded(), dv.rounded()};
}

at::Tensor attend_differentiably(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  const Sight sight{{}, {}, causal, 0, static_cast<float>(scale)};
  const bool in_tiles = !is_invariant() && attends_in_tiles(q, k, v);
  const Attended attended = without_recording([&] { return attend(q, k, v, sight, in_tiles); });
  record("attention", {q, k, v}, {attended.out_BHTD}, {q, k, v, attended.out_BHTD, attended.logsumexp_BHT1},
         [sight, in_tiles](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const AttentionGradients d =
               attend_backward(gradients[0], saved[0], saved[1], saved[2], {saved[3], saved[4]}, sight, in_tiles);
           return {d.q, d.k, d.v};
         });
  return attended.out_BHTD;
}

TROUPE_KERNEL(attention, attend_differentiably);

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  check(q, k, v, causal);
  return attention_kernel(q, k, v, causal, scale);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> Tensor");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("attention", attention); }

}  // namespace troupe
