// The parts of an attention whose sums have the order of kernels/cpu/page_rows.h: that of texts under way, and of invariant forwards. A
// block attends for one query and head.
#pragma once

#include <limits>

#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {

constexpr int kPageThreads = 128;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// q . key, whose features lie `stride` apart.
template <class T>
__device__ float score_of(const T* q, const T* key, int64_t width, int64_t stride) {
  float sums[kFeatureSums] = {};
  int64_t d = 0;
  for (; d + kFeatureSums <= width; d += kFeatureSums) {
#pragma unroll
    for (int sum = 0; sum < kFeatureSums; sum++) sums[sum] += load(q[d + sum]) * load(key[(d + sum) * stride]);
  }
#pragma unroll
  for (int sum = 0; sum < kFeatureSums; sum++) {
    if (d + sum < width) sums[sum] += load(q[d + sum]) * load(key[(d + sum) * stride]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Makes scores [begin, end), which the block has written, weights, and returns what their sums are multiplied by. `most`: the largest
// of a thread's.
__device__ inline float weigh_scores(float* scores, int64_t begin, int64_t end, float most) {
  most = join_block<Max>(most);
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) scores[i] = exp_f32(scores[i] - most);
  __syncthreads();
  // Each warp for itself: its threads are the CPU's lanes.
  const int lane = threadIdx.x % kWarp;
  float sum = 0.0f;
  for (int64_t i = begin + lane; i < end; i += kWarp) sum += scores[i];
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) sum += __shfl_down_sync(~0u, sum, lanes);
  return 1.0f / __shfl_sync(~0u, sum, 0);
}

}  // namespace troupe::cuda
