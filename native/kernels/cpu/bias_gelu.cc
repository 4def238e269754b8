// gelu(x + bias) and its gradients, in one pass each: exact, or in GPT-2's form with tanh. Hendrycks and Gimpel 2016,
// https://arxiv.org/abs/1606.08415. x_RD: R rows of D features; u = x + bias.
//
//   tanh:   y = u s,    s = 1 / (1 + exp(-t)),  t = 2 sqrt(2/pi) (u + 0.044715 u^3),  since tanh(t/2) = 2s - 1
//           dy/du = s + u s (1 - s) dt/du
//   exact:  y = u Phi,  Phi = 1 - q for u >= 0, else q,  q = exp(-u^2/2) t P(t) / 2,  t = 1 / (1 + 0.46 |u| / sqrt(2))
//           dy/du = Phi + u exp(-u^2/2) / sqrt(2 pi)
//
// The form of q is Hastings' (Abramowitz and Stegun 1964, 7.1.26), with two more terms: within 3e-9 of Phi before rounding.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <type_traits>

#include "core/autograd/differentiable.h"
#include "core/programs/tile_products.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/row_blocks.h"
#include "kernels/cpu/row_rules.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Element, class Form>
struct BiasGelu {
  static TROUPE_INLINE void run(const Element* x_RD, const float* bias_D, Element* __restrict y_RD, Rows rows) {
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* x = x_RD + row * rows.dim;
      Element* __restrict y = y_RD + row * rows.dim;
      for (int64_t i = 0; i < rows.dim; i++) {
        const float u = load(x, i) + bias_D[i];
        store(y, i, Form::value(u));
      }
    }
  }
};

template <class Element, class Form>
struct BiasGeluBackward {
  static TROUPE_INLINE void run(const Element* dy_RD, const Element* x_RD, const float* bias_D, Element* __restrict dx_RD,
                                float* __restrict dbias_D, Rows rows) {
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* dy = dy_RD + row * rows.dim;
      const Element* x = x_RD + row * rows.dim;
      Element* __restrict dx = dx_RD + row * rows.dim;
      for (int64_t i = 0; i < rows.dim; i++) {
        const float u = load(x, i) + bias_D[i];
        const float gradient = load(dy, i) * Form::slope(u);
        store(dx, i, gradient);
        dbias_D[i] += gradient;
      }
    }
  }
};

void check(const at::Tensor& x, const at::Tensor& bias, c10::string_view approximate) {
  TORCH_CHECK(x.dim() >= 1 && bias.dim() == 1 && bias.size(0) == x.size(-1), "[bias_gelu] expected bias to have one element per ",
              "feature, the last dim of x ", x.sizes(), ", got ", bias.sizes());
  TORCH_CHECK(with_float_type(x.scalar_type(), [](auto*) {}), "[bias_gelu] expected x to be float32, bfloat16 or float16, got ",
              x.scalar_type());
  TORCH_CHECK(approximate == "tanh" || approximate == "none", "[bias_gelu] expected approximate to be tanh or none, got ",
              std::string(approximate.data(), approximate.size()));
}

at::Tensor activate(const at::Tensor& x, const at::Tensor& bias, bool is_tanh) {
  const RowBlocks blocks(x);
  const at::Tensor bias32 = bias.to(at::kFloat).contiguous();
  at::Tensor y = at::empty_like(x);
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* from = x.data_ptr<Element>();
    auto* to = y.data_ptr<Element>();
    const auto* bias_D = bias32.data_ptr<float>();
    blocks.each([&](int64_t, Rows rows) {
      if (is_tanh) {
        run_best<BiasGelu<Element, TanhGelu>>(from, bias_D, to, rows);
      } else {
        run_best<BiasGelu<Element, ExactGelu>>(from, bias_D, to, rows);
      }
    });
  });
  return y;
}

// The gradients of x and of bias.
Tensors activate_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& bias, bool is_tanh) {
  const RowBlocks blocks(x);
  const at::Tensor bias32 = bias.to(at::kFloat).contiguous();
  const at::Tensor dx = at::empty_like(x), sums = blocks.zero_sums(x);
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* from = x.data_ptr<Element>();
    const auto* gradient = dy.data_ptr<Element>();
    auto* to = dx.data_ptr<Element>();
    auto* dbias = sums.data_ptr<float>();
    const auto* bias_D = bias32.data_ptr<float>();
    blocks.each([&](int64_t block, Rows rows) {
      float* own = dbias + block * rows.dim;
      if (is_tanh) {
        run_best<BiasGeluBackward<Element, TanhGelu>>(gradient, from, bias_D, to, own, rows);
      } else {
        run_best<BiasGeluBackward<Element, ExactGelu>>(gradient, from, bias_D, to, own, rows);
      }
    });
  });
  return {dx, blocks.add_up(sums).to(bias.scalar_type())};
}

TROUPE_KERNEL(bias_gelu, activate);
TROUPE_KERNEL(bias_gelu_backward, activate_backward);

}  // namespace

Backward bias_gelu_backward_of(bool is_tanh) {
  return [is_tanh](const Tensors& gradients, const Tensors& saved) -> Tensors {
    return bias_gelu_backward_kernel(gradients[0].contiguous(), saved[0], saved[1], is_tanh);
  };
}

namespace {

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias, c10::string_view approximate) {
  check(x, bias, approximate);
  const bool is_tanh = approximate == "tanh";
  const at::Tensor input = x.detach().contiguous();
  const at::Tensor y = without_recording([&] { return bias_gelu_kernel(input, bias, is_tanh); });
  record("bias_gelu", {x, bias}, {y}, {input, bias}, bias_gelu_backward_of(is_tanh));
  return y;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("bias_gelu(Tensor x, Tensor bias, str approximate='tanh') -> Tensor"); }

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("bias_gelu", bias_gelu); }

}  // namespace troupe
