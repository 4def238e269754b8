// A gradient's global norm is made of its chunks' sums of squares: because a chunk's sum does not depend on who holds it, the norm has the
// same bits for every number of shards.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <type_traits>

#include "kernels/cpu/chunk_square_sums.h"
#include "kernels/register.h"

namespace troupe {
namespace {

void sum_chunks(const at::Tensor& flat, const at::Tensor& sums) {
  const bool known = with_float_type(flat.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* from = flat.data_ptr<Element>();
    auto* to = sums.data_ptr<double>();
    at::parallel_for(0, sums.numel(), grain_rows(kChunk), [&](int64_t first, int64_t last) {
      run_best<ChunkSquareSums<Element>>(from, to, flat.numel(), first, last);
    });
  });
  TORCH_CHECK(known, "[chunk_square_sums] expected flat to be float32, bfloat16 or float16, got ", flat.scalar_type());
}

TROUPE_KERNEL(chunk_square_sums, sum_chunks);

at::Tensor chunk_square_sums(const at::Tensor& flat) {
  TORCH_CHECK(flat.is_contiguous(), "[chunk_square_sums] expected flat to be contiguous, got strides ", flat.strides());
  const at::Tensor sums = at::empty({(flat.numel() + kChunk - 1) / kChunk}, flat.options().dtype(at::kDouble));
  chunk_square_sums_kernel(flat, sums);
  return sums;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("chunk_square_sums(Tensor flat) -> Tensor"); }

TROUPE_OPERATORS(m) { m.impl("chunk_square_sums", chunk_square_sums); }

}  // namespace troupe
