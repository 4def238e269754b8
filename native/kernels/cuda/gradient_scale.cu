// The gradient's norm and scale: see kernels/cpu/gradient_scale.cc. Sums are added one after the other, as the host does: some
// six cycles each, 0.5 ms of a GPU for 124 million parameters. In another order the bits would be others.
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

// A warp a kind: it reads 32 sums at once, which each of its threads adds up.
__global__ void add_square_sums(const double* shares, int64_t members, int64_t row, int64_t begin, int64_t count, double* sums) {
  const int lane = threadIdx.x;
  double sum = sums[blockIdx.x];
  for (int64_t member = 0; member < members; member++) {
    const double* from = shares + member * row + begin + blockIdx.x * count;
    for (int64_t first = 0; first < count; first += kWarp) {
      const double own = first + lane < count ? from[first + lane] : 0;
      const int64_t last = min(static_cast<int64_t>(kWarp), count - first);
      for (int i = 0; i < last; i++) sum += __shfl_sync(~0u, own, i);
    }
  }
  if (lane == 0) sums[blockIdx.x] = sum;
}

__global__ void make_scale(GradientParts gradient, int64_t kind, double limit, bool leaves_out, double* to) {
  if (threadIdx.x == 0) scale_of(gradient, kind, limit, leaves_out, to);
}

}  // namespace

void launch_add_square_sums(Stream stream, const double* shares, int64_t members, int64_t row, int64_t begin, int64_t count,
                            int64_t kinds, double* sums) {
  if (count == 0) return;
  start("sum_square_sums", add_square_sums, static_cast<unsigned>(kinds), kWarp, stream, shares, members, row, begin, count, sums);
}

void launch_gradient_scale(Stream stream, const GradientParts& gradient, int64_t kind, double limit, bool leaves_out,
                           double* to) {
  start("gradient_scales", make_scale, 1u, kWarp, stream, gradient, kind, limit, leaves_out, to);
}

}  // namespace troupe::cuda
