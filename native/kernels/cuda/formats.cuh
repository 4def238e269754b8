// How CUDA kernels read and write float32, bfloat16 and float16: one element, or four side by side where all is aligned.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cpu/elementary.h"
#include "kernels/cuda/launch.h"

namespace troupe::cuda {

struct BFloat16 {
  uint16_t x;
};
struct Float16 {
  uint16_t x;
};

__device__ __forceinline__ float load(float value) { return value; }
__device__ __forceinline__ float load(BFloat16 value) { return float_of_bfloat16(value.x); }
__device__ __forceinline__ void store(float& to, float value) { to = value; }

// One instruction where the GPU has it: the CPU's bits, but for those of a NaN.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float load(Float16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.x));
  return wide;
}
__device__ __forceinline__ void store(BFloat16& to, float value) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.x) : "f"(value));
}
__device__ __forceinline__ void store(Float16& to, float value) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.x) : "f"(value));
}
#else
__device__ __forceinline__ float load(Float16 value) { return float_of_float16(value.x); }
__device__ __forceinline__ void store(BFloat16& to, float value) { to.x = bfloat16_of(value); }
__device__ __forceinline__ void store(Float16& to, float value) { to.x = float16_of(value); }
#endif

constexpr int kWide = 4;  // elements that a thread takes at a time

template <class T>
struct alignas(kWide * sizeof(T)) Wide {
  T at[kWide];
};

// N elements from `from` on, N being 1 or kWide.
template <int N, class T>
__device__ __forceinline__ void read(const T* from, float (&to)[N]) {
  if constexpr (N == 1) {
    to[0] = load(*from);
  } else {
    const Wide<T> wide = *reinterpret_cast<const Wide<T>*>(from);
#pragma unroll
    for (int i = 0; i < N; i++) to[i] = load(wide.at[i]);
  }
}

template <int N, class T>
__device__ __forceinline__ void write(T* to, const float (&from)[N]) {
  if constexpr (N == 1) {
    store(*to, from[0]);
  } else {
    Wide<T> wide;
#pragma unroll
    for (int i = 0; i < N; i++) store(wide.at[i], from[i]);
    *reinterpret_cast<Wide<T>*>(to) = wide;
  }
}

// The same where the format is known at run time only: one branch, which all threads take.
template <int N>
__device__ __forceinline__ void read(Array from, int64_t index, float (&to)[N]) {
  switch (from.format) {
    case Format::float32: return read<N>(static_cast<const float*>(from.data) + index, to);
    case Format::bfloat16: return read<N>(static_cast<const BFloat16*>(from.data) + index, to);
    default: return read<N>(static_cast<const Float16*>(from.data) + index, to);
  }
}

template <int N>
__device__ __forceinline__ void write(Array to, int64_t index, const float (&from)[N]) {
  switch (to.format) {
    case Format::float32: return write<N>(static_cast<float*>(to.data) + index, from);
    case Format::bfloat16: return write<N>(static_cast<BFloat16*>(to.data) + index, from);
    default: return write<N>(static_cast<Float16*>(to.data) + index, from);
  }
}

// Calls body with a null pointer of the element type.
template <class Body>
void with_format(Format format, const Body& body) {
  switch (format) {
    case Format::float32: return body(static_cast<float*>(nullptr));
    case Format::bfloat16: return body(static_cast<BFloat16*>(nullptr));
    default: return body(static_cast<Float16*>(nullptr));
  }
}

// Queues a kernel, of blocks of `threads`. In one place: where there is no nvcc the kernels run on the host (test/gpu).
template <class... Parameters, class... Arguments>
void start(const char* name, void (*kernel)(Parameters...), dim3 blocks, dim3 threads, Stream stream, Arguments... arguments) {
#if TROUPE_CUDA_ON_HOST
  on_host::run(blocks, threads, [&] { kernel(arguments...); });
#else
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
#endif
  check_launch(name);
}

inline int64_t bytes_of(Format format) { return format == Format::float32 ? 4 : 2; }

// Whether kWide elements may be read at once wherever an index is a multiple of kWide.
inline bool is_wide(const void* data, Format format) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(kWide * bytes_of(format)) == 0;
}
inline bool is_wide(Array array) { return array.data == nullptr || is_wide(array.data, array.format); }

}  // namespace troupe::cuda
