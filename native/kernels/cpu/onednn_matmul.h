// oneDNN's product, which every libtorch with oneDNN has and none declares in an installed header: weak, so that it is null
// in the others. result = beta * result + alpha * a @ b.
#pragma once

#include <ATen/core/Tensor.h>

namespace at {
namespace native {
__attribute__((weak)) void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result, float beta, float alpha);
}  // namespace native
}  // namespace at
