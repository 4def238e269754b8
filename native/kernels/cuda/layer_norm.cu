// Layer norm: see kernels/cpu/layer_norm.cc. A warp or a block a row; what a row is read again for comes from the nearest cache.
#include "kernels/cpu/row_rules.h"
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

template <class T, bool wide, class Team>
__global__ void normalize(const T* x_RD, const T* residual_RD, T* sum_RD, Array weight_D, Array bias_D, float eps, int64_t num_rows,
                          int64_t dim, T* y_RD, float* mean_R, float* rstd_R) {
  const int64_t row = Team::row();
  if (row >= num_rows) return;
  const T* x = x_RD + row * dim;
  const T* residual = residual_RD == nullptr ? nullptr : residual_RD + row * dim;
  T* added = sum_RD == nullptr ? nullptr : sum_RD + row * dim;
  T* y = y_RD + row * dim;
  float sum = 0.0f;
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N];
    read_sum<N>(x, residual, added, i, value);
#pragma unroll
    for (int j = 0; j < N; j++) sum += value[j];
  });
  if (added != nullptr) x = added;  // each thread reads again what it has written
  const float mean = Team::sum(sum) / static_cast<float>(dim);
  float squares = 0.0f;
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N];
    read<N>(x + i, value);
#pragma unroll
    for (int j = 0; j < N; j++) squares += (value[j] - mean) * (value[j] - mean);
  });
  const float rstd = 1.0f / sqrtf(Team::sum(squares) / static_cast<float>(dim) + eps);
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N], weight[N], bias[N] = {};
    read<N>(x + i, value);
    read<N>(weight_D, i, weight);
    if (bias_D.data != nullptr) read<N>(bias_D, i, bias);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = normed(value[j], mean, rstd) * weight[j] + bias[j];
    write<N>(y + i, value);
  });
  if (Team::index() == 0) {
    mean_R[row] = mean;
    rstd_R[row] = rstd;
  }
}

template <class T, bool wide, class Team>
__global__ void normalize_backward(const T* dy_RD, const T* x_RD, Array weight_D, const float* mean_R,
                                   const float* rstd_R, const T* dsum_RD, int64_t num_rows,
                                   int64_t dim, T* dx_RD) {
  const int64_t row = Team::row();
  if (row >= num_rows) return;
  const T* dy = dy_RD + row * dim;
  const T* x = x_RD + row * dim;
  const T* dsum = dsum_RD == nullptr ? nullptr : dsum_RD + row * dim;
  T* dx = dx_RD + row * dim;
  const float mean = mean_R[row], rstd = rstd_R[row];
  float scaled = 0.0f, projected = 0.0f;
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float g[N], value[N], weight[N];
    read<N>(dy + i, g);
    read<N>(x + i, value);
    read<N>(weight_D, i, weight);
#pragma unroll
    for (int j = 0; j < N; j++) {
      scaled += g[j] * weight[j];
      projected += g[j] * weight[j] * normed(value[j], mean, rstd);
    }
  });
  const float mean_scaled = Team::sum(scaled) / static_cast<float>(dim);
  const float mean_projected = Team::sum(projected) / static_cast<float>(dim);
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float g[N], value[N], weight[N], more[N] = {};
    read<N>(dy + i, g);
    read<N>(x + i, value);
    read<N>(weight_D, i, weight);
    if (dsum != nullptr) read<N>(dsum + i, more);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float xhat = normed(value[j], mean, rstd);
      value[j] = norm_gradient(g[j] * weight[j], xhat, rstd, mean_scaled, mean_projected) + more[j];
    }
    write<N>(dx + i, value);
  });
}

template <class T>
struct LayerNormTerms {
  const T *dy_RD, *x_RD;
  const float *mean_R, *rstd_R;
  int64_t dim;

  template <int N>
  __device__ void at(int64_t row, int64_t column, float (&terms)[2][N]) const {
    const float mean = mean_R[row], rstd = rstd_R[row];
    float value[N];
    read<N>(dy_RD + row * dim + column, terms[1]);
    read<N>(x_RD + row * dim + column, value);
#pragma unroll
    for (int j = 0; j < N; j++) terms[0][j] = terms[1][j] * normed(value[j], mean, rstd);
  }
};

}  // namespace

void launch_layer_norm(Stream stream, Format format, Rows rows, const void* x, Residual added, Array weight, Array bias, float eps,
                       void* y, float* mean, float* rstd) {
  if (rows.rows == 0 || rows.dim == 0) return;
  const bool wide = rows.dim % kWide == 0 && is_wide(x, format) && is_wide(added.residual, format) && is_wide(added.sum, format) &&
                    is_wide(y, format) && is_wide(weight) && is_wide(bias);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_team(rows, wide, [&](auto is_wide, auto team, unsigned blocks, int threads) {
      start("layer_norm", normalize<T, is_wide.value, decltype(team)>, blocks, threads, stream, static_cast<const T*>(x), static_cast<const T*>(added.residual), static_cast<T*>(added.sum), weight, bias, eps, rows.rows, rows.dim, static_cast<T*>(y), mean, rstd);
    });
  });
}

void launch_layer_norm_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, Array weight,
                                const float* mean, const float* rstd, const void* dsum, void* dx, float* partial,
                                Array dweight, Array dbias) {
  if (rows.dim == 0) return;
  const bool wide = rows.dim % kWide == 0 && is_wide(dy, format) && is_wide(x, format) && is_wide(dsum, format) &&
                    is_wide(dx, format) && is_wide(weight);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* gradient = static_cast<const T*>(dy);
    const auto* input = static_cast<const T*>(x);
    if (rows.rows > 0) {
      with_team(rows, wide, [&](auto is_wide, auto team, unsigned blocks, int threads) {
        start("layer_norm", normalize_backward<T, is_wide.value, decltype(team)>, blocks, threads, stream, gradient, input, weight, mean, rstd, static_cast<const T*>(dsum), rows.rows, rows.dim, static_cast<T*>(dx));
      });
    }
    launch_sum_columns<2>("layer_norm", stream, LayerNormTerms<T>{gradient, input, mean, rstd, rows.dim}, rows, wide,
                          partial, {dweight, dbias});
  });
}

}  // namespace troupe::cuda
