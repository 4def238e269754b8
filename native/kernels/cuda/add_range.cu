// to (+)= from between float formats: see kernels/cpu/add_range.h.
#include "kernels/cuda/elements.cuh"

namespace troupe::cuda {
namespace {

struct AddRange {
  Array to, from;
  bool accumulate;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N], sum[N] = {};
    read<N>(from, i, value);
    if (accumulate) read<N>(to, i, sum);
#pragma unroll
    for (int j = 0; j < N; j++) sum[j] += value[j];
    write<N>(to, i, sum);
  }
};

}  // namespace

void launch_add_range(Stream stream, Array to, Array from, int64_t numel, bool accumulate) {
  launch_each("add_range", stream, numel, is_wide(to) && is_wide(from), AddRange{to, from, accumulate});
}

}  // namespace troupe::cuda
