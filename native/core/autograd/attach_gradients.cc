// Makes a value that was computed together with its gradients a differentiable function of what it was computed from. For
// losses whose gradients are cheapest made in forward, by code that is no single operator.

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <vector>

#include "core/autograd/differentiable.h"

namespace troupe {
namespace {

// The gradient of an input for the gradient `d` of the value: times a scalar, or row by row for a vector of values.
at::Tensor scaled(const at::Tensor& gradient, const at::Tensor& d, double factor) {
  if (d.dim() == 0 && !d.is_cpu()) {
    // The same numbers as below, without asking the device for one: rounded to float32 once, and the product to its dtype.
    const at::ScalarType wide = gradient.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return gradient.to(wide).mul(d.to(at::kDouble).mul(factor).to(wide)).to(gradient.scalar_type());
  }
  if (d.dim() == 0) {
    const double scale = d.item<double>() * factor;
    return scale == 1.0 ? gradient : gradient.mul(scale);
  }
  std::vector<int64_t> rows(static_cast<size_t>(gradient.dim()), 1);
  rows[0] = d.size(0);
  return gradient.mul(d.mul(factor).view(rows)).to(gradient.scalar_type());
}

at::Tensor attach(const at::Tensor& value, at::TensorList inputs, at::TensorList gradients, double factor) {
  TORCH_CHECK(value.dim() <= 1 && inputs.size() == gradients.size(),
              "[attach_gradients] expected a value of at most one dim, and a gradient for every input, got ", value.sizes(), ", ",
              inputs.size(), " inputs and ", gradients.size(), " gradients");
  for (size_t i = 0; i < inputs.size(); i++) {
    TORCH_CHECK(inputs[i].sizes() == gradients[i].sizes() && inputs[i].scalar_type() == gradients[i].scalar_type(),
                "[attach_gradients] expected a gradient of its input's shape and dtype, got ", gradients[i].sizes(), " for ",
                inputs[i].sizes());
  }
  const at::Tensor out = value.detach();
  record("attach_gradients", inputs.vec(), {out}, gradients.vec(),
         [factor](const Tensors& d, const Tensors& saved) -> Tensors {
           Tensors result;
           for (const at::Tensor& gradient : saved) result.push_back(scaled(gradient, d[0], factor));
           return result;
         });
  return out;
}

at::Tensor detached(const at::Tensor& value, at::TensorList, at::TensorList, double) { return value.alias(); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("attach_gradients(Tensor value, Tensor[] inputs, Tensor[] gradients, float factor) -> Tensor");
}

TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { m.impl("attach_gradients", detached); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { m.impl("attach_gradients", attach); }

}  // namespace troupe
