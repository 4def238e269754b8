// A tensor that passes through unchanged, and whose gradient is kept on its way back: summed under a number over all walks
// of the graph, until it is asked for.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/autograd/differentiable.h"
#include "kernels/register.h"

namespace troupe {
namespace {

// Thread-safe: backward may run on any thread.
class ObservedGradients {
 public:
  static ObservedGradients& get() {
    static ObservedGradients observed;
    return observed;
  }

  void add(int64_t id, const at::Tensor& gradient) {
    std::lock_guard<std::mutex> lock(mutex_);
    at::Tensor& sum = sums_[id];
    // Out of place: autograd may hand one gradient to several functions.
    sum = sum.defined() ? sum.add(gradient) : gradient.detach();
  }

  std::vector<at::Tensor> take(int64_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sums_.find(id);
    if (found == sums_.end()) return {};
    const at::Tensor sum = found->second;
    sums_.erase(found);
    return {sum};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int64_t, at::Tensor> sums_;
};

at::Tensor observe(const at::Tensor& x, int64_t) { return x.alias(); }

at::Tensor observe_autograd(const at::Tensor& x, int64_t id) {
  const at::Tensor y = x.detach();
  record("observe", {x}, {y}, {}, [id](const Tensors& gradients, const Tensors&) -> Tensors {
    ObservedGradients::get().add(id, gradients[0]);
    return {gradients[0]};
  });
  return y;
}

std::vector<at::Tensor> observed(int64_t id) { return ObservedGradients::get().take(id); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("observe(Tensor x, int id) -> Tensor");
  m.def("observed(int id) -> Tensor[]");
}

TROUPE_OPERATORS(m) { m.impl("observe", observe); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { m.impl("observe", observe_autograd); }

TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { m.impl("observed", observed); }

}  // namespace troupe
