// Mean cross entropy of existing logits. float32 copies of the logits never exist: statistics are float32 and the gradient
// has the logits' dtype. The loss is a float32 scalar whatever the logits are.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

#include "core/autograd/differentiable.h"
#include "core/dispatch/describe.h"
#include "kernels/cpu/cross_entropy_rows.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/register.h"

namespace troupe {
namespace {

struct Statistics {
  at::Tensor loss;         // float32 scalar
  at::Tensor logsumexp_R;  // float32
};

Statistics compute(const at::Tensor& logits_RV, const Targets& targets) {
  double loss_sum = 0;
  const at::Tensor logsumexp_R = cross_entropy_rows(logits_RV, targets, 0, loss_sum);
  return {at::scalar_tensor(loss_sum / static_cast<double>(targets.num_counted), at::kFloat), logsumexp_R};
}

at::Tensor mean_loss(const at::Tensor& logits, const at::Tensor& target_ids, int64_t ignore_index) {
  const Targets targets = check_targets("cross_entropy", target_ids, logits.size(0), logits.size(1), ignore_index);
  const at::Tensor logits_RV = logits.detach().contiguous();
  const Statistics out = without_recording([&] { return compute(logits_RV, targets); });
  record("cross_entropy", {logits}, {out.loss}, {logits_RV, out.logsumexp_R},
         [targets](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const at::Tensor dlogits = at::empty_like(saved[0]);
           const float scale = gradients[0].item<float>() * targets.row_weight();
           cross_entropy_gradient(saved[0], saved[1], targets, 0, scale, dlogits);
           return {dlogits};
         });
  return out.loss;
}

TROUPE_KERNEL(cross_entropy, mean_loss);

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target_ids, int64_t ignore_index) {
  TORCH_CHECK(logits.dim() == 2 && with_float_type(logits.scalar_type(), [](auto*) {}),
              "[cross_entropy] expected logits to be [rows, classes], float32, bfloat16 or float16, got ", dtype_name(logits.scalar_type()), " ",
              logits.sizes());
  return cross_entropy_kernel(logits, target_ids, ignore_index);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("cross_entropy(Tensor logits, Tensor targets, int ignore_index) -> Tensor");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("cross_entropy", cross_entropy); }

}  // namespace troupe
