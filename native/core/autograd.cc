#include "core/autograd.h"

#include <torch/csrc/autograd/autograd.h>

namespace troupe {

void run_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients,
                  const std::vector<at::Tensor>& inputs, bool retain_graph) {
  torch::autograd::backward(outputs, gradients, retain_graph, /*create_graph=*/false, inputs);
}

std::vector<at::Tensor> run_grad(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                                 const std::vector<at::Tensor>& gradients, bool retain_graph, bool allow_unused) {
  return torch::autograd::grad(outputs, inputs, gradients, retain_graph, /*create_graph=*/false, allow_unused);
}

}  // namespace troupe
