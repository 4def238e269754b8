#include "core/autograd/autograd.h"

#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>

#include "core/autograd/row_gradients.h"
#include "core/invariance.h"
#include "core/torch_version.h"

namespace troupe {
namespace {

// libtorch's engine runs the backward of each device in one thread for all callers. There, ranks that wait for each other in their
// backwards would wait for ever.
void stay_in_this_thread() {
#if TROUPE_TORCH_AT_LEAST(2, 0)
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
#endif
}

}  // namespace

void run_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients,
                  const std::vector<at::Tensor>& inputs, bool retain_graph) {
  stay_in_this_thread();
  const Variant backward;
  torch::autograd::backward(outputs, gradients, retain_graph, /*create_graph=*/false, inputs);
}

std::vector<at::Tensor> run_grad(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                                 const std::vector<at::Tensor>& gradients, GradOptions options) {
  stay_in_this_thread();
  const Variant backward;
  std::optional<RowGradients> by_rows;
  if (options.first_by_rows < inputs.size()) by_rows.emplace();
  auto made = torch::autograd::grad(outputs, inputs, gradients, options.retain_graph, /*create_graph=*/false, options.allow_unused);
  for (size_t i = 0; i < std::min(options.first_by_rows, made.size()); i++) {
    if (made[i].defined() && made[i].is_sparse()) made[i] = made[i].to_dense();
  }
  return made;
}

}  // namespace troupe
