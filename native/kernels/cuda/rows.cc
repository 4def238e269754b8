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
  const at::Tensor scale = weight.contiguous(), shift = bias.defined() ? bias.contiguous() : bias;
  launch_layer_norm(call.stream(), format_of(x), rows, x.data_ptr(), array_of(scale), array_or_none(shift),
                    static_cast<float>(eps), out.y.data_ptr(), floats(out.mean), floats(out.rstd));
  return out;
}

NormGradients layer_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& dsum) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const at::Tensor partial = partial_sums(x, rows, 2), scale = weight.contiguous();
  const NormGradients d{at::empty_like(x), at::empty_like(scale), at::empty_like(scale)};
  launch_layer_norm_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), array_of(scale), floats(mean),
                             floats(rstd), data_of(dsum), d.x.data_ptr(), floats(partial), array_of(d.weight), array_of(d.bias));
  return d;
}

Normalized rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const Normalized out{at::empty_like(x), at::Tensor(), float_row(x, rows.rows)};
  const at::Tensor scale = weight.contiguous();
  launch_rms_norm(call.stream(), format_of(x), rows, x.data_ptr(), array_of(scale), static_cast<float>(eps),
                  out.y.data_ptr(), floats(out.rstd));
  return out;
}

NormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                                const at::Tensor& dsum) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const at::Tensor partial = partial_sums(x, rows, 1), scale = weight.contiguous();
  const NormGradients d{at::empty_like(x), at::empty_like(scale), at::Tensor()};
  launch_rms_norm_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), array_of(scale), floats(rstd),
                           data_of(dsum), d.x.data_ptr(), floats(partial), array_of(d.weight));
  return d;
}

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  const Call call(x);
  const at::Tensor y = at::empty_like(x), shift = bias.contiguous();
  launch_bias_gelu(call.stream(), format_of(x), rows_of(x), x.data_ptr(), array_of(shift), y.data_ptr());
  return y;
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& bias) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const at::Tensor partial = partial_sums(x, rows, 1), shift = bias.contiguous();
  const at::Tensor dx = at::empty_like(x), dbias = at::empty_like(shift);
  launch_bias_gelu_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), array_of(shift), dx.data_ptr(),
                            floats(partial), array_of(dbias));
  return {dx, dbias};
}

}  // namespace troupe::cuda
