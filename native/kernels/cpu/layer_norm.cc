// Layer norm over the last dim, alone and after a residual addition.
// Ba, Kiros and Hinton 2016, https://arxiv.org/abs/1607.06450.
// Statistics and sums are float32 in any dtype. x_RD: R rows of D features.
//
//   y = (x - mean) * rstd * weight + bias
//   dx = rstd * (gw - mean(gw) - xhat * mean(gw * xhat)),  gw = dy * weight,  xhat = (x - mean) * rstd

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>
#include <tuple>
#include <type_traits>

#include "core/autograd/differentiable.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/norms.h"
#include "kernels/cpu/row_blocks.h"
#include "kernels/cpu/row_rules.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int kFeatureLanes = 32;

template <class Element>
struct Normalize {
  static TROUPE_INLINE void run(const Element* x_RD, const float* weight_D, const float* bias_D, Element* __restrict y_RD,
                                float* mean_R, float* rstd_R, float eps, Rows rows) {
    const auto dim = static_cast<float>(rows.dim);
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* x = x_RD + row * rows.dim;
      Element* __restrict y = y_RD + row * rows.dim;
      const auto value = [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(x, i); };
      const float mean = sum_terms<float, kFeatureLanes>(0, rows.dim, value) / dim;
      // A second pass over the row, which is in the cache: the difference of two large sums would lose digits.
      const auto square = [&](int64_t i) TROUPE_INLINE_LAMBDA { return (load(x, i) - mean) * (load(x, i) - mean); };
      const float variance = sum_terms<float, kFeatureLanes>(0, rows.dim, square) / dim;
      const float rstd = 1.0f / std::sqrt(variance + eps);
      for (int64_t i = 0; i < rows.dim; i++) {
        store(y, i, normed(load(x, i), mean, rstd) * weight_D[i] + (bias_D ? bias_D[i] : 0.0f));
      }
      mean_R[row] = mean;
      rstd_R[row] = rstd;
    }
  }
};

// Adds to dweight_D and dbias_D, in row order. `dsum_RD`, when there, is added to dx.
template <class Element>
struct NormalizeBackward {
  static TROUPE_INLINE void run(const Element* dy_RD, const Element* x_RD, const float* weight_D, const float* mean_R,
                                const float* rstd_R, const Element* dsum_RD, Element* __restrict dx_RD,
                                float* __restrict dweight_D, float* __restrict dbias_D, Rows rows) {
    const auto dim = static_cast<float>(rows.dim);
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* dy = dy_RD + row * rows.dim;
      const Element* x = x_RD + row * rows.dim;
      const Element* dsum = dsum_RD ? dsum_RD + row * rows.dim : nullptr;
      Element* __restrict dx = dx_RD + row * rows.dim;
      const float mean = mean_R[row], rstd = rstd_R[row];
      const auto scaled = [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(dy, i) * weight_D[i]; };
      const auto projected = [&](int64_t i) TROUPE_INLINE_LAMBDA { return scaled(i) * normed(load(x, i), mean, rstd); };
      const float mean_scaled = sum_terms<float, kFeatureLanes>(0, rows.dim, scaled) / dim;
      const float mean_projected = sum_terms<float, kFeatureLanes>(0, rows.dim, projected) / dim;
      for (int64_t i = 0; i < rows.dim; i++) {
        const float xhat = normed(load(x, i), mean, rstd);
        const float g = load(dy, i);
        const float through_norm = norm_gradient(g * weight_D[i], xhat, rstd, mean_scaled, mean_projected);
        store(dx, i, through_norm + (dsum ? load(dsum, i) : 0.0f));
        dweight_D[i] += g * xhat;
        dbias_D[i] += g;
      }
    }
  }
};

void check(const char* op, const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias) {
  TORCH_CHECK(x.dim() >= 1 && weight.dim() == 1 && weight.size(0) == x.size(-1), "[", op, "] expected weight to have one element ",
              "per feature, the last dim of x ", x.sizes(), ", got ", weight.sizes());
  TORCH_CHECK(!bias || bias->sizes() == weight.sizes(), "[", op, "] expected bias to have the shape of weight, ", weight.sizes(),
              ", got ", bias ? bias->sizes() : at::IntArrayRef());
  TORCH_CHECK(with_float_type(x.scalar_type(), [](auto*) {}), "[", op, "] expected x to be float32, bfloat16 or float16, got ",
              x.scalar_type());
}

at::Tensor as_float(const at::Tensor& tensor) { return tensor.to(at::kFloat).contiguous(); }

Normalized normalize(const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias, double eps) {
  const RowBlocks blocks(x);
  const at::Tensor mean = at::empty({blocks.num_rows()}, x.options().dtype(at::kFloat));
  const Normalized out{at::empty_like(x), mean, at::empty_like(mean)};
  const at::Tensor weight32 = as_float(weight), bias32 = bias ? as_float(*bias) : at::Tensor();
  const float* weight_D = weight32.data_ptr<float>();
  const float* bias_D = bias ? bias32.data_ptr<float>() : nullptr;
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* from = x.data_ptr<Element>();
    auto* to = out.y.template data_ptr<Element>();
    auto* means = out.mean.template data_ptr<float>();
    auto* rstds = out.rstd.template data_ptr<float>();
    blocks.each([&](int64_t, Rows rows) {
      run_best<Normalize<Element>>(from, weight_D, bias_D, to, means, rstds, static_cast<float>(eps), rows);
    });
  });
  return out;
}

NormGradients normalize_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& mean,
                             const at::Tensor& rstd, const at::Tensor& dsum) {
  const RowBlocks blocks(x);
  const at::Tensor weight32 = as_float(weight);
  const at::Tensor dx = at::empty_like(x), dweights = blocks.zero_sums(x), dbiases = blocks.zero_sums(x);
  const float* weight_D = weight32.data_ptr<float>();
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* dy_RD = dy.data_ptr<Element>();
    const Element* x_RD = x.data_ptr<Element>();
    const Element* dsum_RD = dsum.defined() ? dsum.data_ptr<Element>() : nullptr;
    const float* mean_R = mean.data_ptr<float>();
    const float* rstd_R = rstd.data_ptr<float>();
    blocks.each([&](int64_t block, Rows rows) {
      run_best<NormalizeBackward<Element>>(dy_RD, x_RD, weight_D, mean_R, rstd_R, dsum_RD, dx.data_ptr<Element>(),
                                           dweights.data_ptr<float>() + block * rows.dim,
                                           dbiases.data_ptr<float>() + block * rows.dim, rows);
    });
  });
  return {dx, blocks.add_up(dweights).to(weight.scalar_type()), blocks.add_up(dbiases).to(weight.scalar_type())};
}

AddedNorm add_normalize(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        const c10::optional<at::Tensor>& bias, double eps) {
  const at::Tensor sum = x.add(residual).contiguous();
  return {sum, normalize(sum, weight, bias, eps)};
}

TROUPE_KERNEL(layer_norm, normalize);
TROUPE_KERNEL(add_layer_norm, add_normalize);
TROUPE_KERNEL(layer_norm_backward, normalize_backward);

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias, double eps) {
  check("layer_norm", x, weight, bias);
  const at::Tensor input = x.detach().contiguous();
  const Normalized out = without_recording([&] { return layer_norm_kernel(input, weight, bias, eps); });
  record("layer_norm", {x, weight, bias.value_or(at::Tensor())}, {out.y}, {input, weight, out.mean, out.rstd},
         [](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const NormGradients d =
               layer_norm_backward_kernel(gradients[0].contiguous(), saved[0], saved[1], saved[2], saved[3], at::Tensor());
           return {d.x, d.weight, d.bias};
         });
  return out.y;
}

void check_residual(const at::Tensor& x, const at::Tensor& residual) {
  TORCH_CHECK(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type(),
              "[add_layer_norm] expected residual to have the shape and dtype of x, ", x.sizes(), " ", x.scalar_type(), ", got ",
              residual.sizes(), " ", residual.scalar_type());
}

Tensors add_layer_norm_backward(const Tensors& gradients, const Tensors& saved) {
  const at::Tensor dsum = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
  if (!gradients[1].defined()) return {dsum, dsum, at::Tensor(), at::Tensor()};
  const NormGradients d = layer_norm_backward_kernel(gradients[1].contiguous(), saved[0], saved[1], saved[2], saved[3], dsum);
  return {d.x, d.x, d.weight, d.bias};
}

std::tuple<at::Tensor, at::Tensor> add_layer_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                                  const c10::optional<at::Tensor>& bias, double eps) {
  check("add_layer_norm", x, weight, bias);
  check_residual(x, residual);
  const auto [sum, out] = without_recording([&] { return add_layer_norm_kernel(x, residual, weight, bias, eps); });
  record("add_layer_norm", {x, residual, weight, bias.value_or(at::Tensor())}, {sum, out.y},
         {sum, weight, out.mean, out.rstd}, add_layer_norm_backward);
  return {sum, out.y};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("layer_norm(Tensor x, Tensor weight, Tensor? bias, float eps) -> Tensor");
  m.def(
      "add_layer_norm(Tensor x, Tensor residual, Tensor weight, Tensor? bias, float eps) -> (Tensor sum, Tensor normed)");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) {
  m.impl("layer_norm", layer_norm);
  m.impl("add_layer_norm", add_layer_norm);
}

}  // namespace troupe
