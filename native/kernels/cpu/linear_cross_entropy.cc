// Mean cross entropy of hidden @ weight^T without ever holding all logits: rows are taken in chunks whose logits fill at
// most 64 MiB, and a chunk's gradient overwrites its logits. When gradients will be wanted they are made in forward, while
// the logits are there; backward only scales them. hidden_ND, weight_VD, targets_N.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>

#include "core/autograd/differentiable.h"
#include "core/programs/tile_products.h"
#include "kernels/cpu/cross_entropy_rows.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kMaxLogitsBytes = int64_t{64} << 20;

struct Wanted {
  bool hidden;
  bool weight;
};

struct LossAndGradients {
  at::Tensor loss;       // float32 scalar
  at::Tensor hidden_ND;  // gradients, times `factor` for an incoming gradient of 1; undefined where not wanted
  at::Tensor weight_VD;
  float factor;
};

// The part of a row's weight that is left to backward: float16 cannot hold p / rows, and a loss scale would come too late.
float deferred_factor(const at::Tensor& hidden, const Targets& targets) {
  return hidden.scalar_type() == at::kHalf ? targets.row_weight() : 1.0f;
}

int64_t rows_per_chunk(const at::Tensor& hidden, const at::Tensor& weight) {
  const int64_t row_bytes = std::max<int64_t>(1, weight.size(0) * static_cast<int64_t>(hidden.element_size()));
  return std::max<int64_t>(1, kMaxLogitsBytes / row_bytes);
}

// The tile products gain by so many columns; others are libtorch's.
void multiply_into(at::Tensor out, const at::Tensor& a, const at::Tensor& b) {
  if (multiplies_tiles(a, b)) multiply_tiles(a, b, out);
  else at::mm_out(out, a, b);
}

// dW += dlogits^T hidden. Several chunks add up in float32: bfloat16 would lose the small ones.
void add_weight_gradient(at::Tensor& sum_VD, const at::Tensor& dlogits_RV, const at::Tensor& hidden_RD, bool only_chunk) {
  const at::Tensor chunk_VD = at::empty({dlogits_RV.size(1), hidden_RD.size(1)}, hidden_RD.options());
  multiply_into(chunk_VD, dlogits_RV.t(), hidden_RD);
  if (only_chunk) {
    sum_VD = chunk_VD;
  } else {
    sum_VD.add_(chunk_VD);
  }
}

LossAndGradients compute(const at::Tensor& hidden_ND, const at::Tensor& weight_VD, const Targets& targets, Wanted wanted) {
  const int64_t num_rows = hidden_ND.size(0);
  const int64_t chunk_rows = rows_per_chunk(hidden_ND, weight_VD);
  const bool only_chunk = num_rows > 0 && num_rows <= chunk_rows;
  LossAndGradients out;
  out.factor = deferred_factor(hidden_ND, targets);
  const float scale = targets.row_weight() / out.factor;
  if (wanted.hidden) out.hidden_ND = at::empty_like(hidden_ND);
  if (wanted.weight && !only_chunk) out.weight_VD = at::zeros(weight_VD.sizes(), weight_VD.options().dtype(at::kFloat));
  double loss_sum = 0;
  for (int64_t first = 0; first < num_rows; first += chunk_rows) {
    const at::Tensor hidden_RD = hidden_ND.narrow(0, first, std::min(chunk_rows, num_rows - first));
    const at::Tensor logits_RV = at::mm(hidden_RD, weight_VD.t()).contiguous();
    const at::Tensor logsumexp_R = cross_entropy_rows(logits_RV, targets, first, loss_sum);
    if (!wanted.hidden && !wanted.weight) continue;
    cross_entropy_gradient(logits_RV, logsumexp_R, targets, first, scale, logits_RV);
    if (wanted.hidden) multiply_into(out.hidden_ND.narrow(0, first, hidden_RD.size(0)), logits_RV, weight_VD);
    if (wanted.weight) add_weight_gradient(out.weight_VD, logits_RV, hidden_RD, only_chunk);
  }
  if (wanted.weight) out.weight_VD = out.weight_VD.to(weight_VD.scalar_type());
  out.loss = at::scalar_tensor(loss_sum / static_cast<double>(targets.num_counted), at::kFloat);
  return out;
}

at::Tensor mean_loss_in_chunks(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& target_ids,
                               int64_t ignore_index) {
  const Targets targets =
      check_targets("linear_cross_entropy", target_ids, hidden.size(0), weight.size(0), ignore_index);
  const Wanted wanted{wants_gradient({hidden}), wants_gradient({weight})};
  const LossAndGradients out =
      without_recording([&] { return compute(hidden.contiguous(), weight.contiguous(), targets, wanted); });
  record("linear_cross_entropy", {hidden, weight}, {out.loss}, {out.hidden_ND, out.weight_VD},
         [factor = out.factor](const Tensors& gradients, const Tensors& saved) {
           const double scale = gradients[0].item<double>() * factor;
           Tensors scaled = saved;
           for (at::Tensor& gradient : scaled) {
             if (gradient.defined() && scale != 1.0) gradient = gradient.mul(scale);
           }
           return scaled;
         });
  return out.loss;
}

TROUPE_KERNEL(linear_cross_entropy, mean_loss_in_chunks);

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& target_ids,
                                int64_t ignore_index) {
  TORCH_CHECK(hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1),
              "[linear_cross_entropy] expected hidden to be [rows, width] and weight [classes, width], got ", hidden.sizes(),
              " and ", weight.sizes());
  TORCH_CHECK(hidden.scalar_type() == weight.scalar_type() && with_float_type(hidden.scalar_type(), [](auto*) {}),
              "[linear_cross_entropy] expected hidden and weight both to be float32, bfloat16 or float16, got ",
              hidden.scalar_type(), " and ", weight.scalar_type());
  return linear_cross_entropy_kernel(hidden, weight, target_ids, ignore_index);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, int ignore_index) -> Tensor");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("linear_cross_entropy", linear_cross_entropy); }

}  // namespace troupe
