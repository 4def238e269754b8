#include "core/autograd/differentiable.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "core/autograd/watched.h"

namespace troupe {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

bool any_defined(const variable_list& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.defined(); });
}

struct Recorded final : Node {
  Recorded(const char* op, const Tensors& tensors, Backward backward) : op(op), backward(std::move(backward)) {
    // Detached: an output that was saved as it is would own itself through this node.
    for (const at::Tensor& tensor : tensors) {
      saved.emplace_back(tensor.defined() ? tensor.detach() : tensor, /*is_output=*/false);
    }
  }

  variable_list apply(variable_list&& gradients) override {
    TORCH_CHECK(!at::GradMode::is_enabled(), "[", op, "] expected gradients once, got a call for gradients of gradients ",
                "(compute it from libtorch's own operators)");
    if (!any_defined(gradients)) return variable_list(num_outputs());
    TORCH_CHECK(!released, torch::autograd::ERR_BACKWARD_TWICE);
    Tensors tensors;
    for (const SavedVariable& variable : saved) tensors.push_back(variable.unpack());
    const auto run = [&] { return without_recording([&] { return backward(gradients, tensors); }); };
    AutogradWatcher* const watcher = autograd_watcher();
    if (watcher == nullptr || watched < 0) return run();
    const Tensors results = watcher->unseen(run);
    watcher->ran(watched, gradients, results);
    return results;
  }

  void release_variables() override {
    released = true;
    saved.clear();
  }

  std::string name() const override { return std::string("troupe::") + op; }

  const char* const op;
  const Backward backward;
  std::vector<SavedVariable> saved;
  bool released = false;
  int64_t watched = -1;  // its name for the thread's watcher
};

// Nodes were held by shared_ptr before they counted their owners themselves.
template <class Pointer, class NodeType, class... Arguments>
Pointer make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<Node>>) {
    // Its own deleter, or the end of a long graph would recurse once per node.
    return Pointer(new NodeType(std::forward<Arguments>(arguments)...), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<NodeType>(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace

AutogradWatcher*& autograd_watcher() {
  thread_local AutogradWatcher* watcher = nullptr;
  return watcher;
}

bool wants_gradient(const Tensors& inputs) {
  const bool wanted = at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
                        return input.defined() && input.requires_grad();
                      });
  AutogradWatcher* const watcher = autograd_watcher();
  return watcher == nullptr ? wanted : watcher->wants(wanted);
}

void record(const char* op, const Tensors& inputs, const Tensors& outputs, const Tensors& saved, Backward backward) {
  if (!wants_gradient(inputs)) return;
  AutogradWatcher* const watcher = autograd_watcher();
  int64_t watched = -1;
  if (watcher != nullptr && watcher->take(backward, saved, watched)) return;
  using NodePointer = decltype(torch::autograd::Edge::function);
  const NodePointer node = make_node<NodePointer, Recorded>(op, saved, std::move(backward));
  static_cast<Recorded*>(&*node)->watched = watched;
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (at::Tensor output : outputs) torch::autograd::set_history(output, node);
}

}  // namespace troupe
