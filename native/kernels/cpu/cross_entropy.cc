// Mean cross entropy of existing logits. float32 copies of the logits never exist: statistics are float32 and the gradient
// has the logits' dtype. The loss is a float32 scalar whatever the logits are.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "kernels/cpu/cross_entropy_rows.h"
#include "kernels/cpu/float_formats.h"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Targets check(const at::Tensor& logits, const at::Tensor& targets, int64_t ignore_index) {
  TORCH_CHECK(logits.dim() == 2 && with_float_type(logits.scalar_type(), [](auto*) {}),
              "[cross_entropy] logits must be [rows, classes], float32, bfloat16 or float16: got ", logits.scalar_type(), " ",
              logits.sizes());
  return check_targets("cross_entropy", targets, logits.size(0), logits.size(1), ignore_index);
}

at::Tensor mean_of(double loss_sum, const Targets& targets) {
  return at::scalar_tensor(loss_sum / static_cast<double>(targets.num_counted), at::kFloat);
}

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& target_ids,
                            int64_t ignore_index) {
    at::AutoDispatchBelowADInplaceOrView below;
    const Targets targets = check(logits, target_ids, ignore_index);
    const at::Tensor logits_RV = logits.contiguous();
    double loss_sum = 0;
    const at::Tensor logsumexp_R = cross_entropy_rows(logits_RV, targets, 0, loss_sum);
    context->save_for_backward({logits_RV, logsumexp_R, targets.ids});
    context->saved_data["ignore_index"] = ignore_index;
    context->saved_data["num_counted"] = targets.num_counted;
    return mean_of(loss_sum, targets);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Targets targets{saved[2], context->saved_data["ignore_index"].toInt(),
                          context->saved_data["num_counted"].toInt()};
    const at::Tensor dlogits = at::empty_like(saved[0]);
    const float scale = gradients[0].item<float>() * targets.row_weight();
    cross_entropy_gradient(saved[0], saved[1], targets, 0, scale, dlogits);
    return {dlogits, {}, {}};
  }
};

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target_ids, int64_t ignore_index) {
  const Targets targets = check(logits, target_ids, ignore_index);
  double loss_sum = 0;
  cross_entropy_rows(logits.contiguous(), targets, 0, loss_sum);
  return mean_of(loss_sum, targets);
}

at::Tensor cross_entropy_autograd(const at::Tensor& logits, const at::Tensor& target_ids, int64_t ignore_index) {
  return CrossEntropy::apply(logits, target_ids, ignore_index);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("cross_entropy(Tensor logits, Tensor targets, int ignore_index) -> Tensor");
}

TORCH_LIBRARY_IMPL(troupe, CPU, m) { m.impl("cross_entropy", cross_entropy); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { m.impl("cross_entropy", cross_entropy_autograd); }

}  // namespace troupe
