// gelu(x + bias) in GPT-2's form with tanh, and its gradients, in one pass each. Hendrycks and Gimpel 2016,
// https://arxiv.org/abs/1606.08415. x_RD: R rows of D features.
//
//   u = x + bias,  t = 2 sqrt(2/pi) (u + 0.044715 u^3),  y = u s  with  s = 1 / (1 + exp(-t)),  since tanh(t/2) = 2s - 1
//   dy/du = s + u s (1 - s) dt/du

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <type_traits>

#include "core/autograd/differentiable.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/row_blocks.h"
#include "kernels/cuda/kernels.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr float kLinear = 1.5957691216f;  // 2 sqrt(2 / pi)
constexpr float kCubic = 0.044715f * kLinear;

TROUPE_INLINE float gate(float u) { return 1.0f / (1.0f + exp_f32(-u * (kLinear + kCubic * (u * u)))); }

template <class Element>
struct BiasGelu {
  static TROUPE_INLINE void run(const Element* x_RD, const float* bias_D, Element* __restrict y_RD, Rows rows) {
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* x = x_RD + row * rows.dim;
      Element* __restrict y = y_RD + row * rows.dim;
      for (int64_t i = 0; i < rows.dim; i++) {
        const float u = load(x, i) + bias_D[i];
        store(y, i, u * gate(u));
      }
    }
  }
};

template <class Element>
struct BiasGeluBackward {
  static TROUPE_INLINE void run(const Element* dy_RD, const Element* x_RD, const float* bias_D, Element* __restrict dx_RD,
                                float* __restrict dbias_D, Rows rows) {
    for (int64_t row = rows.first; row < rows.last; row++) {
      const Element* dy = dy_RD + row * rows.dim;
      const Element* x = x_RD + row * rows.dim;
      Element* __restrict dx = dx_RD + row * rows.dim;
      for (int64_t i = 0; i < rows.dim; i++) {
        const float u = load(x, i) + bias_D[i];
        const float s = gate(u);
        const float slope = s + u * s * (1.0f - s) * (kLinear + 3.0f * kCubic * (u * u));
        const float gradient = load(dy, i) * slope;
        store(dx, i, gradient);
        dbias_D[i] += gradient;
      }
    }
  }
};

void check(const at::Tensor& x, const at::Tensor& bias) {
  TORCH_CHECK(x.dim() >= 1 && bias.dim() == 1 && bias.size(0) == x.size(-1), "[bias_gelu] bias must have one element per ",
              "feature, the last dim of x ", x.sizes(), ": got ", bias.sizes());
  TORCH_CHECK(with_float_type(x.scalar_type(), [](auto*) {}), "[bias_gelu] x must be float32, bfloat16 or float16: got ",
              x.scalar_type());
}

at::Tensor activate(const at::Tensor& x, const at::Tensor& bias) {
#if HAVE_CUDA
  if (cuda::holds(x)) return cuda::bias_gelu(x, bias);
#endif
  const RowBlocks blocks(x);
  const at::Tensor bias32 = bias.to(at::kFloat).contiguous();
  at::Tensor y = at::empty_like(x);
  with_float_type(x.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* from = x.data_ptr<Element>();
    auto* to = y.data_ptr<Element>();
    const auto* bias_D = bias32.data_ptr<float>();
    blocks.each([&](int64_t, Rows rows) { run_best<BiasGelu<Element>>(from, bias_D, to, rows); });
  });
  return y;
}

struct BiasGeluGradients {
  at::Tensor x, bias;
};

BiasGeluGradients activate_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& bias) {
#if HAVE_CUDA
  if (cuda::holds(x)) {
    const auto [dx, dbias] = cuda::bias_gelu_backward(dy, x, bias);
    return {dx, dbias};
  }
#endif
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
      run_best<BiasGeluBackward<Element>>(gradient, from, bias_D, to, dbias + block * rows.dim, rows);
    });
  });
  return {dx, blocks.add_up(sums).to(bias.scalar_type())};
}

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  check(x, bias);
  return activate(x.contiguous(), bias);
}

at::Tensor bias_gelu_autograd(const at::Tensor& x, const at::Tensor& bias) {
  check(x, bias);
  const at::Tensor input = x.detach().contiguous();
  const at::Tensor y = without_recording([&] { return activate(input, bias); });
  record("bias_gelu", {x, bias}, {y}, {input, bias}, [](const Tensors& gradients, const Tensors& saved) -> Tensors {
    const BiasGeluGradients d = activate_backward(gradients[0].contiguous(), saved[0], saved[1]);
    return {d.x, d.bias};
  });
  return y;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("bias_gelu(Tensor x, Tensor bias) -> Tensor"); }

TROUPE_KERNELS(m) { m.impl("bias_gelu", bias_gelu); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { m.impl("bias_gelu", bias_gelu_autograd); }

}  // namespace troupe
