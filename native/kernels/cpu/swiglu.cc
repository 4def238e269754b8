// silu(gate) * up and its gradients, in one pass each: the gated feed-forward layer. Shazeer 2020,
// https://arxiv.org/abs/2002.05202.
//
//   s = 1 / (1 + exp(-gate)),  y = gate s up
//   dup = dy gate s,  dgate = dy up (s + gate s (1 - s))

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <type_traits>

#include "core/autograd/differentiable.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Element>
struct Swiglu {
  static TROUPE_INLINE void run(const Element* gate, const Element* up, Element* __restrict y, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const float g = load(gate, i);
      store(y, i, g / (1.0f + exp_f32(-g)) * load(up, i));
    }
  }
};

template <class Element>
struct SwigluBackward {
  static TROUPE_INLINE void run(const Element* dy, const Element* gate, const Element* up, Element* __restrict dgate,
                                Element* __restrict dup, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const float g = load(gate, i), d = load(dy, i);
      const float s = 1.0f / (1.0f + exp_f32(-g));
      store(dgate, i, d * load(up, i) * (s + g * s * (1.0f - s)));
      store(dup, i, d * g * s);
    }
  }
};

void check_swiglu(const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
              "[swiglu] expected gate and up to have one shape and dtype, got ", gate.sizes(), " ", gate.scalar_type(), " and ",
              up.sizes(), " ", up.scalar_type());
  TORCH_CHECK(with_float_type(gate.scalar_type(), [](auto*) {}), "[swiglu] expected gate to be float32, bfloat16 or float16, got ",
              gate.scalar_type());
}

at::Tensor apply_swiglu(const at::Tensor& gate, const at::Tensor& up) {
  at::Tensor y = at::empty_like(gate);
  with_float_type(gate.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* gates = gate.data_ptr<Element>();
    const auto* ups = up.data_ptr<Element>();
    auto* to = y.data_ptr<Element>();
    at::parallel_for(0, y.numel(), kGrainElements,
                     [&](int64_t first, int64_t last) { run_best<Swiglu<Element>>(gates, ups, to, first, last); });
  });
  return y;
}

Tensors apply_swiglu_backward(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up) {
  const at::Tensor dgate = at::empty_like(gate), dup = at::empty_like(up);
  with_float_type(gate.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* gradients = dy.data_ptr<Element>();
    const auto* gates = gate.data_ptr<Element>();
    const auto* ups = up.data_ptr<Element>();
    auto* to_gate = dgate.data_ptr<Element>();
    auto* to_up = dup.data_ptr<Element>();
    at::parallel_for(0, dy.numel(), kGrainElements, [&](int64_t first, int64_t last) {
      run_best<SwigluBackward<Element>>(gradients, gates, ups, to_gate, to_up, first, last);
    });
  });
  return {dgate, dup};
}

TROUPE_KERNEL(swiglu, apply_swiglu);
TROUPE_KERNEL(swiglu_backward, apply_swiglu_backward);

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  check_swiglu(gate, up);
  const at::Tensor gates = gate.detach().contiguous(), ups = up.detach().contiguous();
  const at::Tensor y = without_recording([&] { return swiglu_kernel(gates, ups); });
  record("swiglu", {gate, up}, {y}, {gates, ups}, [](const Tensors& gradients, const Tensors& saved) -> Tensors {
    return swiglu_backward_kernel(gradients[0].contiguous(), saved[0], saved[1]);
  });
  return y;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) { m.def("swiglu(Tensor gate, Tensor up) -> Tensor"); }

TROUPE_DIFFERENTIABLE_OPERATORS(m) { m.impl("swiglu", swiglu); }

}  // namespace troupe
