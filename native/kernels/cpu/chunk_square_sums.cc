// Sums of squares of every 1,024 elements of a flat buffer, in float64. A gradient's global norm is made of these: because
// a chunk's sum does not depend on who holds it, the norm has the same bits for every number of shards.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kChunk = 1024;
constexpr int kChunkLanes = 32;

// The square of a float is exact in float64, so only the order of the additions matters, and that is the lanes'.
template <class Element>
struct ChunkSquareSums {
  static TROUPE_INLINE void run(const Element* __restrict from, double* __restrict sums, int64_t numel,
                                int64_t first_chunk, int64_t last_chunk) {
    for (int64_t chunk = first_chunk; chunk < last_chunk; chunk++) {
      const int64_t end = std::min(numel, (chunk + 1) * kChunk);
      sums[chunk] = sum_terms<double, kChunkLanes>(chunk * kChunk, end, [&](int64_t i) TROUPE_INLINE_LAMBDA {
        const double value = load(from, i);
        return value * value;
      });
    }
  }
};

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
