// In place of CUDA's header: kernels as functions of the host, one block after the other, a block's threads as fibers that meet
// at barriers and shuffles. Slow; for seeing whether a kernel computes what it should, and whether a barrier is missing:
// threads run in an order that TROUPE_CUDA_ON_HOST names, one to its next barrier before the next begins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __shared__ static
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace on_host {

struct Thread {
  dim3 thread, block, block_size, grid_size;
};

// The thread that runs.
extern Thread present;

// Runs `kernel` once for each thread of each block.
void run(dim3 blocks, dim3 threads, const std::function<void()>& kernel);

void wait_for_block();
// The thread's place in its warp of 32, and what the one at another place gave in the same call.
int lane();
uint64_t exchange(uint64_t own, int with);

}  // namespace on_host

#define threadIdx (on_host::present.thread)
#define blockIdx (on_host::present.block)
#define blockDim (on_host::present.block_size)
#define gridDim (on_host::present.grid_size)

inline void __syncthreads() { on_host::wait_for_block(); }

template <class T>
T shuffle(T value, int with) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = on_host::exchange(bits, with);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
T __shfl_sync(unsigned, T value, int from) {
  return shuffle(value, from);
}
template <class T>
T __shfl_down_sync(unsigned, T value, int offset) {
  const int with = on_host::lane() + offset;
  return shuffle(value, with < 32 ? with : on_host::lane());
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return shuffle(value, on_host::lane() ^ mask);
}

inline double atomicAdd(double* to, double value) {
  const double before = *to;
  *to += value;
  return before;
}
inline unsigned long long atomicMax(unsigned long long* to, unsigned long long value) {
  const unsigned long long before = *to;
  *to = std::max(before, value);
  return before;
}

inline int64_t min(int64_t a, int64_t b) { return std::min(a, b); }
inline int64_t max(int64_t a, int64_t b) { return std::max(a, b); }
inline float on_host_exp(float value) { return std::exp(value); }
#define __expf on_host_exp
inline long long __double_as_longlong(double value) { return __builtin_bit_cast(long long, value); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }

using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0;
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return ""; }
