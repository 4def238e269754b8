// Root-mean-square norm: see kernels/cpu/rms_norm.cc. A warp or a block a row.
#include "kernels/cpu/row_rules.h"
#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

template <class T, bool wide, class Team>
__global__ void rms_normalize(const T* x_RD, const T* residual_RD, T* sum_RD, Array weight_D, float eps, int64_t num_rows, int64_t dim,
                              T* y_RD, float* rstd_R) {
  const int64_t row = Team::row();
  if (row >= num_rows) return;
  const T* x = x_RD + row * dim;
  const T* residual = residual_RD == nullptr ? nullptr : residual_RD + row * dim;
  T* added = sum_RD == nullptr ? nullptr : sum_RD + row * dim;
  T* y = y_RD + row * dim;
  float squares = 0.0f;
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N];
    read_sum<N>(x, residual, added, i, value);
#pragma unroll
    for (int j = 0; j < N; j++) squares += value[j] * value[j];
  });
  if (added != nullptr) x = added;  // each thread reads again what it has written
  const float rstd = 1.0f / sqrtf(Team::sum(squares) / static_cast<float>(dim) + eps);
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float value[N], weight[N];
    read<N>(x + i, value);
    read<N>(weight_D, i, weight);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = value[j] * rstd * weight[j];
    write<N>(y + i, value);
  });
  if (Team::index() == 0) rstd_R[row] = rstd;
}

template <class T, bool wide, class Team>
__global__ void rms_normalize_backward(const T* dy_RD, const T* x_RD, Array weight_D, const float* rstd_R,
                                       const T* dsum_RD, int64_t num_rows,
                                   int64_t dim, T* dx_RD) {
  const int64_t row = Team::row();
  if (row >= num_rows) return;
  const T* dy = dy_RD + row * dim;
  const T* x = x_RD + row * dim;
  const T* dsum = dsum_RD == nullptr ? nullptr : dsum_RD + row * dim;
  T* dx = dx_RD + row * dim;
  const float rstd = rstd_R[row];
  float projected = 0.0f;
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float g[N], value[N], weight[N];
    read<N>(dy + i, g);
    read<N>(x + i, value);
    read<N>(weight_D, i, weight);
#pragma unroll
    for (int j = 0; j < N; j++) projected += g[j] * weight[j] * (value[j] * rstd);
  });
  const float mean_projected = Team::sum(projected) / static_cast<float>(dim);
  each_of_row<wide, Team>(dim, [&](auto wide_or_one, int64_t i) {
    constexpr int N = decltype(wide_or_one)::value;
    float g[N], value[N], weight[N], more[N] = {};
    read<N>(dy + i, g);
    read<N>(x + i, value);
    read<N>(weight_D, i, weight);
    if (dsum != nullptr) read<N>(dsum + i, more);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = rms_norm_gradient(g[j] * weight[j], value[j] * rstd, rstd, mean_projected) + more[j];
    write<N>(dx + i, value);
  });
}

template <class T>
struct RmsNormTerms {
  const T *dy_RD, *x_RD;
  const float* rstd_R;
  int64_t dim;

  template <int N>
  __device__ void at(int64_t row, int64_t column, float (&terms)[1][N]) const {
    const float rstd = rstd_R[row];
    float g[N], value[N];
    read<N>(dy_RD + row * dim + column, g);
    read<N>(x_RD + row * dim + column, value);
#pragma unroll
    for (int j = 0; j < N; j++) terms[0][j] = g[j] * (value[j] * rstd);
  }
};

}  // namespace

void launch_rms_norm(Stream stream, Format format, Rows rows, const void* x, Residual added, Array weight, float eps, void* y,
                     float* rstd) {
  if (rows.rows == 0 || rows.dim == 0) return;
  const bool wide = rows.dim % kWide == 0 && is_wide(x, format) && is_wide(added.residual, format) && is_wide(added.sum, format) &&
                    is_wide(y, format) && is_wide(weight);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_team(rows, wide, [&](auto is_wide, auto team, unsigned blocks, int threads) {
      start("rms_norm", rms_normalize<T, is_wide.value, decltype(team)>, blocks, threads, stream, static_cast<const T*>(x), static_cast<const T*>(added.residual), static_cast<T*>(added.sum), weight, eps, rows.rows, rows.dim, static_cast<T*>(y), rstd);
    });
  });
}

void launch_rms_norm_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, Array weight,
                              const float* rstd, const void* dsum, void* dx, float* partial, Array dweight) {
  if (rows.dim == 0) return;
  const bool wide = rows.dim % kWide == 0 && is_wide(dy, format) && is_wide(x, format) && is_wide(dsum, format) &&
                    is_wide(dx, format) && is_wide(weight);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* gradient = static_cast<const T*>(dy);
    const auto* input = static_cast<const T*>(x);
    if (rows.rows > 0) {
      with_team(rows, wide, [&](auto is_wide, auto team, unsigned blocks, int threads) {
        start("rms_norm", rms_normalize_backward<T, is_wide.value, decltype(team)>, blocks, threads, stream, gradient, input, weight, rstd, static_cast<const T*>(dsum), rows.rows, rows.dim, static_cast<T*>(dx));
      });
    }
    launch_sum_columns<1>("rms_norm", stream, RmsNormTerms<T>{gradient, input, rstd, rows.dim}, rows, wide, partial, {dweight});
  });
}

}  // namespace troupe::cuda
