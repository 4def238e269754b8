// Norms and bias-GELU over rows: memory for what the kernels write.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "kernels/cuda/call.h"
#include "kernels/cuda/kernels.h"

namespace troupe::cuda {
namespace {

at::Tensor float_row(const at::Tensor& like, int64_t size) {
  return at::empty({size}, like.options().dtype(at::kFloat));
}

// For `sums` sums of each column, made in blocks of rows.
at::Tensor partial_sums(const at::Tensor& like, Rows rows, int64_t sums) {
  return float_row(like, sums * row_blocks(rows.rows) * rows.dim);
}

}  // namespace

Normalized layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const Normalized out{at::empty_like(x), float_row(x, rows.rows), float_row(x, rows.rows)};
  const at::Tensor weight32 = as_float(weight), bias32 = bias.defined() ? as_float(bias) : bias;
  launch_layer_norm(call.stream(), format_of(x), rows, x.data_ptr(), floats(weight32), floats(bias32),
                    static_cast<float>(eps), out.y.data_ptr(), floats(out.mean), floats(out.rstd));
  return out;
}

NormGradients layer_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& dsum) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const NormGradients d{at::empty_like(x), float_row(x, rows.dim), float_row(x, rows.dim)};
  const at::Tensor partial = partial_sums(x, rows, 2), weight32 = as_float(weight);
  launch_layer_norm_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), floats(weight32), floats(mean),
                             floats(rstd), data_of(dsum), d.x.data_ptr(), floats(partial), floats(d.weight), floats(d.bias));
  return {d.x, d.weight.to(weight.scalar_type()), d.bias.to(weight.scalar_type())};
}

Normalized rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const Normalized out{at::empty_like(x), at::Tensor(), float_row(x, rows.rows)};
  const at::Tensor weight32 = as_float(weight);
  launch_rms_norm(call.stream(), format_of(x), rows, x.data_ptr(), floats(weight32), static_cast<float>(eps),
                  out.y.data_ptr(), floats(out.rstd));
  return out;
}

NormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                                const at::Tensor& dsum) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const NormGradients d{at::empty_like(x), float_row(x, rows.dim), at::Tensor()};
  const at::Tensor partial = partial_sums(x, rows, 1), weight32 = as_float(weight);
  launch_rms_norm_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), floats(weight32), floats(rstd),
                           data_of(dsum), d.x.data_ptr(), floats(partial), floats(d.weight));
  return {d.x, d.weight.to(weight.scalar_type()), at::Tensor()};
}

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  const Call call(x);
  const at::Tensor y = at::empty_like(x), bias32 = as_float(bias);
  launch_bias_gelu(call.stream(), format_of(x), rows_of(x), x.data_ptr(), floats(bias32), y.data_ptr());
  return y;
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& bias) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const at::Tensor dx = at::empty_like(x), dbias = float_row(x, rows.dim);
  const at::Tensor partial = partial_sums(x, rows, 1), bias32 = as_float(bias);
  launch_bias_gelu_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), floats(bias32), dx.data_ptr(),
                            floats(partial), floats(dbias));
  return {dx, dbias.to(bias.scalar_type())};
}

}  // namespace troupe::cuda
