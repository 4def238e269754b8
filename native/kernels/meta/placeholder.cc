// Tensors without memory: what a pipeline stage computes with in place of what other stages hold. libtorch brings most of
// the rules from shape to shape; here are those of Troupe's own kernels, and the few that libtorch has only in Python.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <tuple>

namespace troupe {
namespace {

at::Tensor placeholder(at::IntArrayRef size, at::ScalarType dtype) {
  return at::empty(size, at::TensorOptions().dtype(dtype).device(at::kMeta));
}

at::Tensor like(const at::Tensor& x) { return placeholder(x.sizes(), x.scalar_type()); }

at::Tensor scalar_loss() { return placeholder({}, at::kFloat); }

at::Tensor attention(const at::Tensor& q, const at::Tensor&, const at::Tensor&, bool, double) { return like(q); }

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            const std::optional<at::Tensor>&, bool, int64_t, double) {
  return like(q);
}

at::Tensor dropped_attention(const at::Tensor& q, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                             const std::optional<at::Tensor>&, bool, int64_t, double, double, int64_t, int64_t, int64_t,
                             int64_t, int64_t) {
  return like(q);
}

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor&) { return like(x); }

at::Tensor dropout(const at::Tensor& x, double, int64_t, int64_t, int64_t, int64_t, int64_t) { return like(x); }

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor&, const std::optional<at::Tensor>&, double) { return like(x); }

std::tuple<at::Tensor, at::Tensor> add_layer_norm(const at::Tensor& x, const at::Tensor&, const at::Tensor&,
                                                  const std::optional<at::Tensor>&, double) {
  return {like(x), like(x)};
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor&, double) { return like(x); }

std::tuple<at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor&, const at::Tensor&, double) {
  return {like(x), like(x)};
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return like(x); }

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor&) { return like(gate); }

at::Tensor cross_entropy(const at::Tensor&, const at::Tensor&, int64_t) { return scalar_loss(); }

at::Tensor linear_cross_entropy(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) { return scalar_loss(); }

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(dim, self.dim())] = index.numel();
  return placeholder(sizes, self.scalar_type());
}

void register_kernels(torch::Library& m) {
  m.impl("attention", attention);
  m.impl("masked_attention", masked_attention);
  m.impl("dropped_attention", dropped_attention);
  m.impl("bias_gelu", bias_gelu);
  m.impl("dropout", dropout);
  m.impl("layer_norm", layer_norm);
  m.impl("add_layer_norm", add_layer_norm);
  m.impl("rms_norm", rms_norm);
  m.impl("add_rms_norm", add_rms_norm);
  m.impl("rotary", rotary);
  m.impl("swiglu", swiglu);
  m.impl("cross_entropy", cross_entropy);
  m.impl("linear_cross_entropy", linear_cross_entropy);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("placeholder(int[] size, ScalarType dtype) -> Tensor"); }

TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { m.impl("placeholder", placeholder); }

TORCH_LIBRARY_IMPL(troupe, Meta, m) { register_kernels(m); }

// Nothing is recorded of what has no values: the kernels that record would read memory that is not there.
TORCH_LIBRARY_IMPL(troupe, AutogradMeta, m) { register_kernels(m); }

TORCH_LIBRARY_IMPL(aten, Meta, m) { m.impl("index_select", index_select); }

}  // namespace troupe
