// The sum of one slice over all ranks' buffers, in rank order and float32: the same bits however the slices are cut. Where they are asked for,
// its chunks' sums of squares too, while they are in the cache.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "kernels/cpu/add_range.h"
#include "kernels/cpu/chunk_square_sums.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int64_t kSumBlock = 4 * kChunk;  // of the result; stays in the first-level cache until its squares are summed

void sum_ranks(const at::Tensor& out, at::TensorList sources, int64_t begin, const at::Tensor& squares) {
  float* to = out.data_ptr<float>();
  double* const sums = squares.defined() ? squares.data_ptr<double>() : nullptr;
  const int64_t num_blocks = (out.numel() + kSumBlock - 1) / kSumBlock;
  at::parallel_for(0, num_blocks, grain_rows(kSumBlock), [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; block++) {
      const int64_t offset = block * kSumBlock;
      const int64_t length = std::min(kSumBlock, out.numel() - offset);
      for (size_t rank = 0; rank < sources.size(); rank++) {
        with_float_type(sources[rank].scalar_type(), [&](auto* type) {
          using From = std::remove_pointer_t<decltype(type)>;
          const From* from = sources[rank].data_ptr<From>() + begin + offset;
          add_range(to + offset, from, length, rank > 0);
        });
      }
      if (sums) run_best<ChunkSquareSums<float>>(to, sums, out.numel(), offset / kChunk, (offset + length + kChunk - 1) / kChunk);
    }
  });
}

TROUPE_KERNEL(reduce_ranks, sum_ranks);

void reduce_ranks_(at::Tensor out, at::TensorList sources, int64_t begin, const std::optional<at::Tensor>& squares) {
  TORCH_CHECK(out.scalar_type() == at::kFloat && out.is_contiguous(), "[reduce_ranks_] expected out to be contiguous float32, got ",
              out.scalar_type(), " with strides ", out.strides());
  TORCH_CHECK(!sources.empty(), "[reduce_ranks_] expected at least one source, got none");
  TORCH_CHECK(begin >= 0, "[reduce_ranks_] expected begin not to be negative, got ", begin);
  for (const at::Tensor& source : sources) {
    TORCH_CHECK(source.is_contiguous() && begin + out.numel() <= source.numel(), "[reduce_ranks_] expected each source to be ",
                "contiguous and reach element ", begin + out.numel(), ", got ", source.sizes());
    TORCH_CHECK(with_float_type(source.scalar_type(), [](auto*) {}),
                "[reduce_ranks_] expected sources to be float32, bfloat16 or float16, got ", source.scalar_type());
  }
  const int64_t num_chunks = (out.numel() + kChunk - 1) / kChunk;
  TORCH_CHECK(!squares || !squares->defined() || (squares->scalar_type() == at::kDouble && squares->is_contiguous() && squares->numel() == num_chunks),
              "[reduce_ranks_] expected squares to be contiguous float64 of ", num_chunks, " elements, got ", squares->scalar_type(), " of ",
              squares->sizes());
  reduce_ranks_kernel(out, sources, begin, squares.value_or(at::Tensor()));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("reduce_ranks_(Tensor(a!) out, Tensor[] sources, int begin, Tensor(b!)? squares=None) -> ()");
}

TROUPE_OPERATORS(m) { m.impl("reduce_ranks_", reduce_ranks_); }

}  // namespace troupe
