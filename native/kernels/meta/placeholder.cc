// Tensors without memory: what a pipeline stage computes with in place of what other stages hold. libtorch brings most of
// the rules from shape to shape; here are the few that it has only in Python, and in recorded.cc those of Troupe's own kernels.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace troupe {
namespace {

at::Tensor placeholder(at::IntArrayRef size, at::ScalarType dtype) {
  return at::empty(size, at::TensorOptions().dtype(dtype).device(at::kMeta));
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(dim, self.dim())] = index.numel();
  return placeholder(sizes, self.scalar_type());
}

at::Tensor embedding_gradient(const at::Tensor& dy, const at::Tensor&, int64_t num_rows, int64_t, bool) {
  return placeholder({num_rows, dy.size(-1)}, dy.scalar_type());
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("placeholder(int[] size, ScalarType dtype) -> Tensor"); }

TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { m.impl("placeholder", placeholder); }

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("index_select", index_select);
  m.impl("embedding_dense_backward", embedding_gradient);
}

}  // namespace troupe
