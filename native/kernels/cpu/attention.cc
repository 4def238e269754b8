// softmax(scale * q k^T) v on large matrix products. libtorch's fused CPU attention multiplies tiles too small for a
// bfloat16 product to be fast; here a few heads and 128 query rows at a time go to batched products, and a causal block
// never meets the keys after its last row. Scores are float32; only logsumexp is kept for backward, which makes the scores
// again (Dao et al. 2022, https://arxiv.org/abs/2205.14135). q_GTD, k_GSD, v_GSD: G = batch * heads.

#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>

#include "core/differentiable.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/float_formats.h"

namespace troupe {
namespace {

constexpr int64_t kBlockRows = 128;
constexpr int64_t kMaxScores = int64_t{1} << 20;  // float32 scores at a time: 4 MiB

struct Options {
  bool causal;
  double scale;
};

void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
  TORCH_CHECK(q.dim() == 4 && k.sizes() == v.sizes() && k.dim() == 4 && q.size(0) == k.size(0) && q.size(1) == k.size(1) &&
                  q.size(3) == k.size(3),
              "[attention] q, k and v must be [batch, heads, time, width] with equal batch, heads and width: got ", q.sizes(),
              ", ", k.sizes(), " and ", v.sizes());
  TORCH_CHECK(!causal || q.size(2) == k.size(2), "[attention] causal attention must have as many queries as keys: got ",
              q.size(2), " and ", k.size(2));
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
                  with_float_type(q.scalar_type(), [](auto*) {}),
              "[attention] q, k and v must all be float32, bfloat16 or float16: got ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
}

at::Tensor heads_in_a_row(const at::Tensor& x) {
  return x.contiguous().view({x.size(0) * x.size(1), x.size(2), x.size(3)});
}

// A piece of the work: some heads, some query rows, and the keys these may see.
struct Piece {
  int64_t first_head, num_heads;
  int64_t first_row, num_rows;
  int64_t num_keys;

  at::Tensor queries(const at::Tensor& x_GTD) const {
    return x_GTD.narrow(0, first_head, num_heads).narrow(1, first_row, num_rows);
  }
  at::Tensor keys(const at::Tensor& x_GSD) const { return x_GSD.narrow(0, first_head, num_heads).narrow(1, 0, num_keys); }
};

template <class Body>
void each_piece(const at::Tensor& q_GTD, const at::Tensor& k_GSD, bool causal, const Body& body) {
  const int64_t heads = q_GTD.size(0), rows = q_GTD.size(1), keys = k_GSD.size(1);
  const int64_t block_rows = std::min(kBlockRows, rows);
  const int64_t group = std::max<int64_t>(1, kMaxScores / std::max<int64_t>(1, block_rows * keys));
  for (int64_t head = 0; head < heads; head += group) {
    for (int64_t row = 0; row < rows; row += block_rows) {
      const int64_t num_rows = std::min(block_rows, rows - row);
      body(Piece{head, std::min(group, heads - head), row, num_rows, causal ? row + num_rows : keys});
    }
  }
}

struct Attended {
  at::Tensor out_GTD;
  at::Tensor logsumexp_GT;  // float32
};

Attended attend(const at::Tensor& q_GTD, const at::Tensor& k_GSD, const at::Tensor& v_GSD, Options options) {
  Attended result{at::empty_like(q_GTD), at::empty({q_GTD.size(0), q_GTD.size(1)}, q_GTD.options().dtype(at::kFloat))};
  const at::Tensor scaled_q = q_GTD.to(at::kFloat).mul(options.scale), float_k = k_GSD.to(at::kFloat);
  each_piece(q_GTD, k_GSD, options.causal, [&](const Piece& piece) {
    const at::Tensor scores = at::bmm(piece.queries(scaled_q), piece.keys(float_k).transpose(1, 2)).contiguous();
    const at::Tensor probabilities = at::empty(scores.sizes(), q_GTD.options());
    const at::Tensor logsumexp = at::empty({piece.num_heads, piece.num_rows}, scores.options());
    softmax_rows(scores, {options.causal, piece.first_row}, probabilities, logsumexp);
    piece.queries(result.out_GTD).copy_(at::bmm(probabilities, piece.keys(v_GSD)));
    piece.queries(result.logsumexp_GT.unsqueeze(2)).squeeze(2).copy_(logsumexp);
  });
  return result;
}

struct Gradients {
  at::Tensor q_GTD, k_GSD, v_GSD;
};

Gradients attend_backward(const at::Tensor& dout_GTD, const at::Tensor& q_GTD, const at::Tensor& k_GSD,
                          const at::Tensor& v_GSD, const Attended& saved, Options options) {
  const at::TensorOptions float_options = q_GTD.options().dtype(at::kFloat);
  // Every block of rows adds to the gradients of the keys: in float32.
  Gradients d{at::empty_like(q_GTD), at::zeros(k_GSD.sizes(), float_options), at::zeros(v_GSD.sizes(), float_options)};
  const at::Tensor scaled_q = q_GTD.to(at::kFloat).mul(options.scale), float_k = k_GSD.to(at::kFloat);
  const at::Tensor dots_GT1 = row_dots(dout_GTD, saved.out_GTD).unsqueeze(2);
  const at::Tensor logsumexp_GT1 = saved.logsumexp_GT.unsqueeze(2);
  each_piece(q_GTD, k_GSD, options.causal, [&](const Piece& piece) {
    const at::Tensor dout = piece.queries(dout_GTD);
    const at::Tensor scores = at::bmm(piece.queries(scaled_q), piece.keys(float_k).transpose(1, 2)).contiguous();
    const at::Tensor dscores = at::bmm(dout, piece.keys(v_GSD).transpose(1, 2)).contiguous();
    const at::Tensor probabilities = at::empty_like(dscores);
    softmax_rows_backward(scores, {options.causal, piece.first_row}, piece.queries(logsumexp_GT1).contiguous(),
                          piece.queries(dots_GT1).contiguous(), static_cast<float>(options.scale), probabilities, dscores);
    piece.queries(d.q_GTD).copy_(at::bmm(dscores, piece.keys(k_GSD)));
    piece.keys(d.k_GSD).add_(at::bmm(dscores.transpose(1, 2), piece.queries(q_GTD)));
    piece.keys(d.v_GSD).add_(at::bmm(probabilities.transpose(1, 2), dout));
  });
  return {d.q_GTD, d.k_GSD.to(k_GSD.scalar_type()), d.v_GSD.to(v_GSD.scalar_type())};
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  check(q, k, v, causal);
  return attend(heads_in_a_row(q), heads_in_a_row(k), heads_in_a_row(v), {causal, scale}).out_GTD.view(q.sizes());
}

at::Tensor attention_autograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  check(q, k, v, causal);
  const Options options{causal, scale};
  const at::Tensor q_GTD = heads_in_a_row(q.detach());
  const at::Tensor k_GSD = heads_in_a_row(k.detach()), v_GSD = heads_in_a_row(v.detach());
  const Attended attended = without_recording([&] { return attend(q_GTD, k_GSD, v_GSD, options); });
  const at::Tensor out = attended.out_GTD.view(q.sizes());
  const auto backward = [options, batch = q.size(0)](const Tensors& gradients, const Tensors& saved) -> Tensors {
    const Gradients d = attend_backward(heads_in_a_row(gradients[0]), saved[0], saved[1], saved[2], {saved[3], saved[4]},
                                        options);
    const auto split = [&](const at::Tensor& x) { return x.view({batch, x.size(0) / batch, x.size(1), x.size(2)}); };
    return {split(d.q_GTD), split(d.k_GSD), split(d.v_GSD)};
  };
  record("attention", {q, k, v}, {out}, {q_GTD, k_GSD, v_GSD, attended.out_GTD, attended.logsumexp_GT}, backward);
  return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> Tensor");
}

TORCH_LIBRARY_IMPL(troupe, CPU, m) { m.impl("attention", attention); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { m.impl("attention", attention_autograd); }

}  // namespace troupe
