// mm, addmm and bmm in libtorch's dispatcher. Products that this processor multiplies faster than libtorch does go to those kernels; those
// of an invariant forward go row by row. All else, mistakes included, is libtorch's.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <torch/library.h>

#include <cstring>

#include "core/silence_warnings.h"
#include "kernels/cpu/bfloat16_matmul.h"
#include "kernels/cpu/float32_matmul.h"
#include "kernels/cpu/float32_tiles.h"
#include "kernels/cpu/invariant_matmul.h"
#include "kernels/cpu/isa.h"

namespace troupe {
namespace {

enum class Way { libtorch, tiles, float32, bfloat16, invariant };

Way way_of(const at::Tensor& a, const at::Tensor& b, int64_t dim) {
  if (multiplies_invariantly(a, b, dim)) return Way::invariant;
  const at::ScalarType dtype = a.scalar_type();
  if (b.scalar_type() != dtype || a.dim() != dim || b.dim() != dim) return Way::libtorch;
  if (a.size(-1) != b.size(-2) || (dim == 3 && a.size(0) != b.size(0))) return Way::libtorch;
  if (dtype == at::kFloat && multiplies_in_tiles(a, b)) return Way::tiles;
  if (dtype == at::kFloat && onednn_is_quicker(a, b)) return Way::float32;
  if (dtype == at::kBFloat16 && multiplies_bfloat16_in_panels()) return Way::bfloat16;
  return Way::libtorch;
}

// Every row of `sum` becomes `row`.
void fill_rows(const at::Tensor& sum, const at::Tensor& row) {
  const bool plain = row.dim() == 1 && row.is_contiguous() && row.size(0) == sum.size(1);
  if (!plain) {
    at::Tensor(sum).copy_(row.expand(sum.sizes()));
    return;
  }
  const size_t bytes = static_cast<size_t>(row.nbytes());
  const void* from = row.data_ptr();
  char* to = static_cast<char*>(sum.data_ptr());
  at::parallel_for(0, sum.size(0), grain_rows(sum.size(1)), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) std::memcpy(to + static_cast<size_t>(i) * bytes, from, bytes);
  });
}

// out = bias + a @ b, the bias undefined for none.
void multiply(Way way, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const at::Tensor& out) {
  if (way == Way::tiles) return multiply_in_tiles(a, b, bias, out);
  if (bias.defined()) fill_rows(out, bias);
  if (way == Way::float32) multiply_float32(a, b, out, bias.defined());
  else multiply_bfloat16(a, b, out, bias.defined());
}

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  const Way way = way_of(a, b, 2);
  if (way == Way::libtorch) return at::cpu::mm(a, b);
  if (way == Way::invariant) return multiply_invariantly(a, b, {});
  const at::Tensor product = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(way, a, b, {}, product);
  return product;
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  const Way way = way_of(a, b, 2);
  const bool direct = way != Way::libtorch && out.scalar_type() == a.scalar_type() && out.is_contiguous() && out.dim() == 2 &&
                      out.size(0) == a.size(0) && out.size(1) == b.size(1);
  if (!direct) return at::cpu::mm_outf(a, b, out);
  if (way == Way::invariant) return out.copy_(multiply_invariantly(a, b, {}));
  multiply(way, a, b, {}, out);
  return out;
}

at::Tensor addmm(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  const Way way = way_of(a, b, 2);
  if (way == Way::invariant) return multiply_and_add_invariantly(bias, a, b, beta, alpha);
  const bool plain = way != Way::libtorch && beta.toDouble() == 1.0 && alpha.toDouble() == 1.0 &&
                     bias.scalar_type() == a.scalar_type();
  if (!plain) return at::cpu::addmm(bias, a, b, beta, alpha);
  const at::Tensor sum = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(way, a, b, bias, sum);
  return sum;
}

at::Tensor bmm(const at::Tensor& a, const at::Tensor& b) {
  switch (way_of(a, b, 3)) {
    case Way::tiles: return multiply_batches_in_tiles(a, b);
    case Way::float32: return multiply_float32_batches(a, b);
    case Way::bfloat16: return multiply_bfloat16_batches(a, b);
    case Way::invariant: return multiply_batches_invariantly(a, b);
    default: return at::cpu::bmm(a, b);
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  // libtorch warns when a kernel is replaced; here that is the intention.
  const SilenceWarnings silence;
  m.impl("mm", mm);
  m.impl("mm.out", mm_out);
  m.impl("addmm", addmm);
  m.impl("bmm", bmm);
}

}  // namespace troupe
