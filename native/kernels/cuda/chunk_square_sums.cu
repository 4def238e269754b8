// Sums of squares of 1,024 elements: see kernels/cpu/chunk_square_sums.cc. A warp a chunk: its threads are the CPU's lanes.
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

constexpr int64_t kChunk = 1024;

template <class T>
__global__ void sum_chunks(const T* from, int64_t numel, int64_t num_chunks, double* sums) {
  const int64_t chunk = static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (chunk >= num_chunks) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t end = min(numel, (chunk + 1) * kChunk);
  double sum = 0;
  for (int64_t i = chunk * kChunk + lane; i < end; i += kWarp) {
    const double value = load(from[i]);
    sum += value * value;
  }
#pragma unroll
  for (int width = kWarp / 2; width > 0; width /= 2) sum += __shfl_down_sync(~0u, sum, width);
  if (lane == 0) sums[chunk] = sum;
}

}  // namespace

void launch_chunk_square_sums(Stream stream, Array from, int64_t numel, double* sums) {
  const int64_t num_chunks = (numel + kChunk - 1) / kChunk;
  if (num_chunks == 0) return;
  with_format(from.format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("chunk_square_sums", sum_chunks<T>, static_cast<unsigned>((num_chunks + 7) / 8), 8 * kWarp, stream, static_cast<const T*>(from.data), numel,
                                                                                   num_chunks, sums);
  });
}

}  // namespace troupe::cuda
