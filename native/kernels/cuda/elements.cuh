// Kernels that look at each element alone.
#pragma once

#include <algorithm>

#include "kernels/cuda/formats.cuh"

namespace troupe::cuda {

constexpr int kElementThreads = 256;
constexpr int64_t kMaxBlocks = 132 * 16;  // a few waves on the largest GPUs; more work is looped over

// Body::run<N>(index) handles N elements from index on; index is a multiple of N.
template <class Body>
__device__ __forceinline__ void run_each(int64_t numel, bool wide, const Body& body) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t num_wide = wide ? numel / kWide : 0;
  for (int64_t i = first; i < num_wide; i += stride) body.template run<kWide>(i * kWide);
  for (int64_t i = num_wide * kWide + first; i < numel; i += stride) body.template run<1>(i);
}

template <class Body>
__global__ void each_element(int64_t numel, bool wide, Body body) {
  run_each(numel, wide, body);
}

template <class Body>
void launch_each(const char* name, Stream stream, int64_t numel, bool wide, const Body& body) {
  if (numel == 0) return;
  const int64_t threads = wide ? (numel + kWide - 1) / kWide : numel;
  const int64_t blocks = std::min<int64_t>(kMaxBlocks, (threads + kElementThreads - 1) / kElementThreads);
  start(name, each_element<Body>, static_cast<unsigned>(blocks), kElementThreads, stream, numel, wide, body);
}

}  // namespace troupe::cuda
