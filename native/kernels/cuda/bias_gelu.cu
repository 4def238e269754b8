// gelu(x + bias): see kernels/cpu/bias_gelu.cc.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

constexpr float kLinear = 1.5957691216f;  // 2 sqrt(2 / pi)
constexpr float kCubic = 0.044715f * kLinear;

// i % dim. A GPU divides 32 bits in a fifth of the instructions that 64 take.
__device__ __forceinline__ int64_t column_of(int64_t i, int64_t dim) {
  if (((i | dim) >> 32) != 0) return i % dim;
  return static_cast<uint32_t>(i) % static_cast<uint32_t>(dim);
}

__device__ __forceinline__ float gate(float u) { return 1.0f / (1.0f + exp_f32(-u * (kLinear + kCubic * (u * u)))); }

__device__ __forceinline__ float slope(float u) {
  const float s = gate(u);
  return s + u * s * (1.0f - s) * (kLinear + 3.0f * kCubic * (u * u));
}

// `dim` is a multiple of N where elements are taken N at a time, so that they lie in one row.
template <class T>
struct BiasGelu {
  const T* x;
  const float* bias_D;
  T* y;
  int64_t dim;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N], bias[N];
    read<N>(x + i, value);
    read<N>(bias_D + column_of(i, dim), bias);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float u = value[j] + bias[j];
      value[j] = u * gate(u);
    }
    write<N>(y + i, value);
  }
};

template <class T>
struct BiasGeluBackward {
  const T *dy, *x;
  const float* bias_D;
  T* dx;
  int64_t dim;

  template <int N>
  __device__ void run(int64_t i) const {
    float g[N], value[N], bias[N];
    read<N>(dy + i, g);
    read<N>(x + i, value);
    read<N>(bias_D + column_of(i, dim), bias);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = g[j] * slope(value[j] + bias[j]);
    write<N>(dx + i, value);
  }
};

template <class T>
struct BiasGeluTerms {
  const T *dy, *x;
  const float* bias_D;
  int64_t dim;

  __device__ void at(int64_t row, int64_t column, float (&terms)[1]) const {
    terms[0] = load(dy[row * dim + column]) * slope(load(x[row * dim + column]) + bias_D[column]);
  }
};

}  // namespace

void launch_bias_gelu(Stream stream, Format format, Rows rows, const void* x, const float* bias, void* y) {
  const bool wide = rows.dim % kWide == 0 && is_wide(x, format) && is_wide(y, format) && is_wide(bias, Format::float32);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch_each("bias_gelu", stream, rows.rows * rows.dim, wide,
                BiasGelu<T>{static_cast<const T*>(x), bias, static_cast<T*>(y), rows.dim});
  });
}

void launch_bias_gelu_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, const float* bias,
                               void* dx, float* partial, float* dbias) {
  const bool wide = rows.dim % kWide == 0 && is_wide(dy, format) && is_wide(x, format) && is_wide(dx, format) &&
                    is_wide(bias, Format::float32);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* gradient = static_cast<const T*>(dy);
    const auto* input = static_cast<const T*>(x);
    launch_each("bias_gelu", stream, rows.rows * rows.dim, wide,
                BiasGeluBackward<T>{gradient, input, bias, static_cast<T*>(dx), rows.dim});
    launch_sum_columns<1>("bias_gelu", stream, BiasGeluTerms<T>{gradient, input, bias, rows.dim}, rows, partial, {dbias});
  });
}

}  // namespace troupe::cuda
