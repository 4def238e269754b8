// Gradients: thin calls of libtorch's engine. Backward runs in the calling thread, on a device too.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace troupe {

// Adds d(sum of outputs . gradients) to `.grad` of the leaves, or only of `inputs` when given. An undefined gradient
// stands for ones of a one-element output.
void run_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients,
                  const std::vector<at::Tensor>& inputs, bool retain_graph);

struct GradOptions {
  bool retain_graph;
  bool allow_unused;
  size_t first_by_rows;  // gradients of inputs from here on may be sparse
};

// The same gradients as values, one per input; undefined where `allow_unused` and the input was not used.
std::vector<at::Tensor> run_grad(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                                 const std::vector<at::Tensor>& gradients, GradOptions options);

}  // namespace troupe
