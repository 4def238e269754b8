// Whether an element is infinite or NaN: see kernels/cpu/all_finite.cc.
#include "kernels/cuda/elements.cuh"

namespace troupe::cuda {
namespace {

struct FindBad {
  Array from;
  int* bad;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N];
    read<N>(from, i, value);
    bool any = false;
#pragma unroll
    for (int j = 0; j < N; j++) any |= (bits_of(value[j]) & 0x7F800000u) == 0x7F800000u;
    if (any) *bad = 1;  // a race without effect: all threads write the same
  }
};

}  // namespace

void launch_find_bad(Stream stream, Array from, int64_t numel, int* bad) {
  launch_each("all_finite", stream, numel, is_wide(from), FindBad{from, bad});
}

}  // namespace troupe::cuda
