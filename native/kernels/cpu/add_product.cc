// sum += a @ b for a float32 sum and low-precision factors: a weight's gradient on top of those of earlier micro-batches. The product is
// added as it is summed, in float32, and never rounded.

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include "core/programs/tile_products.h"
#include "kernels/register.h"

namespace troupe {
namespace {

// Where there are no tiles: the product is rounded first.
void add_on_host(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (has_tiles_for(a, b)) return multiply_tiles(a, b, sum);
  sum.add_(at::mm(a, b));
}

TROUPE_KERNEL(add_product, add_on_host);

void add_product_(at::Tensor sum, const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType dtype = a.scalar_type();
  TORCH_CHECK((dtype == at::kBFloat16 || dtype == at::kHalf) && b.scalar_type() == dtype,
              "[add_product_] expected factors of bfloat16 or float16, got ", dtype, " and ", b.scalar_type());
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "[add_product_] expected matrices that fit each other, got ",
              a.sizes(), " and ", b.sizes());
  TORCH_CHECK(sum.scalar_type() == at::kFloat && sum.dim() == 2 && sum.size(0) == a.size(0) && sum.size(1) == b.size(1) && sum.is_contiguous(),
              "[add_product_] expected a contiguous sum of float32 of [", a.size(0), ", ", b.size(1), "], got ", sum.scalar_type(), " of ",
              sum.sizes());
  add_product_kernel(sum, a, b);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("add_product_(Tensor(a!) sum, Tensor a, Tensor b) -> ()"); }

TROUPE_OPERATORS(m) { m.impl("add_product_", add_product_); }

}  // namespace troupe
