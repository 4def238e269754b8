// gelu(x + bias): see kernels/cpu/bias_gelu.cc.
#include "kernels/cpu/row_rules.h"
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

// A thread keeps to its columns, whose bias it so reads once and divides no index for.
template <int N, class T>
__global__ void bias_gelu(const T* x_RD, Array bias_D, Rows shape, int64_t block_rows, T* y_RD) {
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x) * N;
  const int64_t first = blockIdx.y * block_rows;
  const int64_t last = min(shape.rows, first + block_rows);
  if (column >= shape.dim) return;
  float bias[N];
  read<N>(bias_D, column, bias);
  for (int64_t row = first + threadIdx.y; row < last; row += kRowThreads) {
    float value[N];
    read<N>(x_RD + row * shape.dim + column, value);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float u = value[j] + bias[j];
      value[j] = TanhGelu::value(u);
    }
    write<N>(y_RD + row * shape.dim + column, value);
  }
}

// Writes dx on its way: what dbias adds up.
template <class T>
struct BiasGeluBackward {
  const T *dy_RD, *x_RD;
  Array bias_D;
  T* dx_RD;
  int64_t dim;

  template <int N>
  __device__ void at(int64_t row, int64_t column, float (&terms)[1][N]) const {
    float g[N], value[N], bias[N];
    read<N>(dy_RD + row * dim + column, g);
    read<N>(x_RD + row * dim + column, value);
    read<N>(bias_D, column, bias);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float u = value[j] + bias[j];
      terms[0][j] = g[j] * TanhGelu::slope(u);
    }
    write<N>(dx_RD + row * dim + column, terms[0]);
  }
};

}  // namespace

void launch_bias_gelu(Stream stream, Format format, Rows rows, const void* x, Array bias, void* y) {
  if (rows.rows == 0 || rows.dim == 0) return;
  const bool wide = rows.dim % kWide == 0 && is_wide(x, format) && is_wide(y, format) && is_wide(bias);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("bias_gelu", wide ? bias_gelu<kWide, T> : bias_gelu<1, T>, column_blocks(rows, wide), column_threads(), stream, static_cast<const T*>(x), bias, rows, rows_a_block(rows), static_cast<T*>(y));
  });
}

void launch_bias_gelu_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, Array bias,
                               void* dx, float* partial, Array dbias) {
  const bool wide = rows.dim % kWide == 0 && is_wide(dy, format) && is_wide(x, format) && is_wide(dx, format) &&
                    is_wide(bias);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const BiasGeluBackward<T> backward{static_cast<const T*>(dy), static_cast<const T*>(x), bias, static_cast<T*>(dx), rows.dim};
    launch_sum_columns<1>("bias_gelu", stream, backward, rows, wide, partial, {dbias});
  });
}

}  // namespace troupe::cuda
