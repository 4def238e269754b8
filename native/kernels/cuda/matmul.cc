// mm, addmm and bmm in libtorch's dispatcher, as in kernels/cpu/matmul.cc: row by row where a forward is invariant; all else, and every
// mistake, is libtorch's.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/cpu/invariant_matmul.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

#if !TROUPE_CUDA_ON_HOST
#include <ATen/ops/addmm_cuda_dispatch.h>
#include <ATen/ops/bmm_cuda_dispatch.h>
#include <ATen/ops/mm_cuda_dispatch.h>

#include "core/silence_warnings.h"
#endif

namespace troupe::cuda {
namespace {

at::Tensor multiply_rows(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const Call call(a);
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  const ProductBias added = bias.defined() ? ProductBias{bias.data_ptr(), bias.stride(0), bias.stride(1)} : ProductBias{};
  launch_multiply_rows(call.stream(), format_of(a), {a.size(0), b.size(1), a.size(1)}, {a.data_ptr(), a.stride(0), a.stride(1)},
                       {b.data_ptr(), b.stride(1), b.stride(0)}, added, out.data_ptr());
  return out;
}

TROUPE_CUDA_KERNEL(multiply_rows, multiply_rows);

#if !TROUPE_CUDA_ON_HOST
at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  return multiplies_invariantly(a, b, 2) ? multiply_invariantly(a, b, {}) : at::cuda::mm(a, b);
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  const bool ours = multiplies_invariantly(a, b, 2) && out.scalar_type() == a.scalar_type() && out.dim() == 2 &&
                    out.size(0) == a.size(0) && out.size(1) == b.size(1);
  return ours ? out.copy_(multiply_invariantly(a, b, {})) : at::cuda::mm_outf(a, b, out);
}

at::Tensor addmm(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return multiplies_invariantly(a, b, 2) ? multiply_and_add_invariantly(bias, a, b, beta, alpha) : at::cuda::addmm(bias, a, b, beta, alpha);
}

at::Tensor bmm(const at::Tensor& a, const at::Tensor& b) {
  return multiplies_invariantly(a, b, 3) ? multiply_batches_invariantly(a, b) : at::cuda::bmm(a, b);
}
#endif

}  // namespace

#if !TROUPE_CUDA_ON_HOST
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  // libtorch warns when a kernel is replaced; here that is the intention.
  const SilenceWarnings silence;
  m.impl("mm", mm);
  m.impl("mm.out", mm_out);
  m.impl("addmm", addmm);
  m.impl("bmm", bmm);
}
#endif

}  // namespace troupe::cuda
