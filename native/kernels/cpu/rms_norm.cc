// Root-mean-square norm over the last dim, alone and after a residual addition.
// Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
// Sums are float32 in any dtype. x_RD: R rows of D features.
//
//   y = x * rstd * weight,  rstd = 1 / sqrt(mean(x^2) + eps)
//   dx = rstd * (gw - xhat * mean(gw * xhat)),  gw = dy * weight,  xhat = x * rstd

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

constexpr int kRmsLanes = 32;

template <class Element>
struct RmsNormalize {
  static TROUPE_INLINE void run(const Element* x_RD, const float* weight_D, Element* __restrict y_RD, float* rstd_R,
                                float eps, Rows rows) {
    const auto dim = static_cast<float>(rows.dim);
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* x = x_RD + row * rows.dim;
      Element* __restrict y = y_RD + row * rows.dim;
      const auto square = [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(x, i) * load(x, i); };
      const float rstd = 1.0f / std::sqrt(sum_terms<float, kRmsLanes>(0, rows.dim, square) / dim + eps);
      for (int64_t i = 0; i < rows.dim; i++) store(y, i, load(x, i) * rstd * weight_D[i]);
      rstd_R[row] = rstd;
    }
  }
};

// Adds to dweight_D, in row order. `dsum_RD`, when there, is added to dx.
template <class Element>
struct RmsNormalizeBackward {
  static TROUPE_INLINE void run(const Element* dy_RD, const Element* x_RD, const float* weight_D, const float* rstd_R,
                                const Element* dsum_RD, Element* __restrict dx_RD, float* __restrict dweight_D, Rows rows) {
    const auto dim = static_cast<float>(rows.dim);
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* dy = dy_RD + row * rows.dim;
      const Element* x = x_RD + row * rows.dim;
      const Element* dsum = dsum_RD ? dsum_RD + row * rows.dim : nullptr;
      Element* __restrict dx = dx_RD + row * rows.dim;
      const float rstd = rstd_R[row];
      const auto projected = [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(dy, i) * weight_D[i] * (load(x, i) * rstd); };
      const float mean_projected = sum_terms<float, kRmsLanes>(0, rows.dim, projected) / dim;
      for (int64_t i = 0; i < rows.dim; i++) {
        const float xhat = load(x, i) * rstd;
        const float g = load(dy, i);
        const float through_norm = rms_norm_gradient(g * weight_D[i], xhat, rstd, mean_projected);
        store(dx, i, through_norm + (dsum ? load(dsum, i) : 0.0f));
        dweight_D[i] += g * xhat;
      }
    }
  }
};

void check_rms(const char* op, const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(x.dim() >= 1 && weight.dim() == 1 && weight.size(0) == x.size(-1), "[", op, "] expected weight to have one element ",
              "per feature, the last dim of x ", x.sizes(), ", got ", weight.sizes());
  TORCH_CHECK(with_float_type(x.scalar_type(), [](auto*) {}), "[", op, "] expected x to be float32, bfloat16 or float16, got ",
              x.scalar_type());
}

Normalized rms_normalize(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const RowBlocks blocks(x);
  const Normalized out{at::empty_like(x), at::Tensor(), at::empty({blocks.num_rows()}, x.options().dtype(at::kFloat))};
  const at::Tensor weight32 = weight.to(at::kFloat).contiguous();
  const float* weight_D = weight32.data_ptr<float>();
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* from = x.data_ptr<Element>();
    auto* to = out.y.template data_ptr<Element>();
    auto* rstds = out.rstd.template data_ptr<float>();
    blocks.each([&](int64_t, Rows rows) {
      run_best<RmsNormalize<Element>>(from, weight_D, to, rstds, static_cast<float>(eps), rows);
    });
  });
  return out;
}

NormGradients rms_normalize_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                        const at::Tensor& rstd, const at::Tensor& dsum) {
  const RowBlocks blocks(x);
  const at::Tensor weight32 = weight.to(at::kFloat).contiguous();
  const at::Tensor dx = at::empty_like(x), dweights = blocks.zero_sums(x);
  const float* weight_D = weight32.data_ptr<float>();
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* dy_RD = dy.data_ptr<Element>();
    const Element* x_RD = x.data_ptr<Element>();
    const Element* dsum_RD = dsum.defined() ? dsum.data_ptr<Element>() : nullptr;
    const float* rstd_R = rstd.data_ptr<float>();
    blocks.each([&](int64_t block, Rows rows) {
      run_best<RmsNormalizeBackward<Element>>(dy_RD, x_RD, weight_D, rstd_R, dsum_RD, dx.data_ptr<Element>(),
                                              dweights.data_ptr<float>() + block * rows.dim, rows);
    });
  });
  return {dx, blocks.add_up(dweights).to(weight.scalar_type()), at::Tensor()};
}

AddedNorm add_rms_normalize(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const at::Tensor sum = x.add(residual).contiguous();
  return {sum, rms_normalize(sum, weight, eps)};
}

TROUPE_KERNEL(rms_norm, rms_normalize);
TROUPE_KERNEL(add_rms_norm, add_rms_normalize);
TROUPE_KERNEL(rms_norm_backward, rms_normalize_backward);

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  check_rms("rms_norm", x, weight);
  const at::Tensor input = x.detach().contiguous();
  const Normalized out = without_recording([&] { return rms_norm_kernel(input, weight, eps); });
  record("rms_norm", {x, weight}, {out.y}, {input, weight, out.rstd},
         [](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const NormGradients d =
               rms_norm_backward_kernel(gradients[0].contiguous(), saved[0], saved[1], saved[2], at::Tensor());
           return {d.x, d.weight};
         });
  return out.y;
}

void check_rms_residual(const at::Tensor& x, const at::Tensor& residual) {
  TORCH_CHECK(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type(),
              "[add_rms_norm] expected residual to have the shape and dtype of x, ", x.sizes(), " ", x.scalar_type(), ", got ",
              residual.sizes(), " ", residual.scalar_type());
}

Tensors add_rms_norm_backward(const Tensors& gradients, const Tensors& saved) {
  const at::Tensor dsum = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
  if (!gradients[1].defined()) return {dsum, dsum, at::Tensor()};
  const NormGradients d = rms_norm_backward_kernel(gradients[1].contiguous(), saved[0], saved[1], saved[2], dsum);
  return {d.x, d.x, d.weight};
}

std::tuple<at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                                double eps) {
  check_rms("add_rms_norm", x, weight);
  check_rms_residual(x, residual);
  const auto [sum, out] = without_recording([&] { return add_rms_norm_kernel(x, residual, weight, eps); });
  record("add_rms_norm", {x, residual, weight}, {sum, out.y}, {sum, weight, out.rstd}, add_rms_norm_backward);
  return {sum, out.y};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
  m.def("add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps) -> (Tensor sum, Tensor normed)");
}

TROUPE_DIFFERENTIABLE_OPERATORS(m) {
  m.impl("rms_norm", rms_norm);
  m.impl("add_rms_norm", add_rms_norm);
}

}  // namespace troupe
