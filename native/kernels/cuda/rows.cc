// Norms and bias-GELU over rows: memory for what the kernels write.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "core/autograd/differentiable.h"
#include "kernels/cpu/norms.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

at::Tensor float_row(const at::Tensor& like, int64_t size) {
  return at::empty({size}, like.options().dtype(at::kFloat));
}

// For `sums` sums of each column, made in blocks of rows.
at::Tensor partial_sums(const at::Tensor& like, Rows rows, int64_t sums) {
  return float_row(like, sums * row_blocks(rows.rows) * rows.dim);
}

// `sum` is written where a residual is added.
Normalized layer_norm_of(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& sum, const at::Tensor& weight,
                         const c10::optional<at::Tensor>& bias, double eps) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const Normalized out{at::empty_like(x), float_row(x, rows.rows), float_row(x, rows.rows)};
  const at::Tensor scale = weight.contiguous(), shift = bias ? bias->contiguous() : at::Tensor();
  launch_layer_norm(call.stream(), format_of(x), rows, x.data_ptr(), {data_of(residual), data_of(sum)}, array_of(scale),
                    array_or_none(shift), static_cast<float>(eps), out.y.data_ptr(), floats(out.mean), floats(out.rstd));
  return out;
}

Normalized layer_norm(const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias, double eps) {
  return layer_norm_of(x, at::Tensor(), at::Tensor(), weight, bias, eps);
}

AddedNorm add_layer_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                         const c10::optional<at::Tensor>& bias, double eps) {
  const at::Tensor one = x.contiguous(), other = residual.contiguous(), sum = at::empty_like(one);
  return {sum, layer_norm_of(one, other, sum, weight, bias, eps)};
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

Normalized rms_norm_of(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& sum, const at::Tensor& weight, double eps) {
  const Call call(x);
  const Rows rows = rows_of(x);
  const Normalized out{at::empty_like(x), at::Tensor(), float_row(x, rows.rows)};
  const at::Tensor scale = weight.contiguous();
  launch_rms_norm(call.stream(), format_of(x), rows, x.data_ptr(), {data_of(residual), data_of(sum)}, array_of(scale),
                  static_cast<float>(eps), out.y.data_ptr(), floats(out.rstd));
  return out;
}

Normalized rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return rms_norm_of(x, at::Tensor(), at::Tensor(), weight, eps);
}

AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const at::Tensor one = x.contiguous(), other = residual.contiguous(), sum = at::empty_like(one);
  return {sum, rms_norm_of(one, other, sum, weight, eps)};
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

// Only the form with tanh has a kernel.
at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias, bool is_tanh) {
  if (!is_tanh) return at::gelu(x.add(bias), "none");
  const Call call(x);
  const at::Tensor y = at::empty_like(x), shift = bias.contiguous();
  launch_bias_gelu(call.stream(), format_of(x), rows_of(x), x.data_ptr(), array_of(shift), y.data_ptr());
  return y;
}

Tensors bias_gelu_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& bias, bool is_tanh) {
  if (!is_tanh) {
    const at::Tensor dx = at::gelu_backward(dy, x.add(bias), "none");
    return {dx, dx.reshape({-1, x.size(-1)}).sum(at::IntArrayRef({0}), false, at::kFloat).to(bias.scalar_type())};
  }
  const Call call(x);
  const Rows rows = rows_of(x);
  const at::Tensor partial = partial_sums(x, rows, 1), shift = bias.contiguous();
  const at::Tensor dx = at::empty_like(x), dbias = at::empty_like(shift);
  launch_bias_gelu_backward(call.stream(), format_of(x), rows, dy.data_ptr(), x.data_ptr(), array_of(shift), dx.data_ptr(),
                            floats(partial), array_of(dbias));
  return {dx, dbias};
}

TROUPE_CUDA_KERNEL(layer_norm, layer_norm);
TROUPE_CUDA_KERNEL(add_layer_norm, add_layer_norm);
TROUPE_CUDA_KERNEL(layer_norm_backward, layer_norm_backward);
TROUPE_CUDA_KERNEL(rms_norm, rms_norm);
TROUPE_CUDA_KERNEL(add_rms_norm, add_rms_norm);
TROUPE_CUDA_KERNEL(rms_norm_backward, rms_norm_backward);
TROUPE_CUDA_KERNEL(bias_gelu, bias_gelu);
TROUPE_CUDA_KERNEL(bias_gelu_backward, bias_gelu_backward);

}  // namespace
}  // namespace troupe::cuda
