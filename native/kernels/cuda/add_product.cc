// A product added to a float32 sum by cuBLAS itself (beta = 1): see kernels/cpu/add_product.cc.
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "core/torch_version.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
#if !TROUPE_CUDA_ON_HOST && TROUPE_TORCH_AT_LEAST(2, 11)
  at::Tensor out = sum;
  at::addmm_out(out, sum, a, b, at::kFloat);
#else
  sum.add_(at::mm(a, b));
#endif
}

TROUPE_CUDA_KERNEL(add_product, add_product);

}  // namespace
}  // namespace troupe::cuda
