// Optimizers with at most one state, over flat buffers in one pass.
//   sgd_   in the order of torch.optim.SGD; momentum after Sutskever et al. 2013
//   lion_  sign of an interpolated momentum, decoupled decay; Chen et al. 2023, https://arxiv.org/abs/2302.06675

#include <torch/library.h>

#include <cmath>

#include "kernels/cpu/flat_step.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Grad, class Low>
struct Sgd {
  static TROUPE_INLINE void run(float* __restrict param, States, const Grad* __restrict grad,
                                Low* __restrict low, int64_t begin, int64_t end, SgdCoefficients c) {
    for (int64_t i = begin; i < end; i++) {
      const float d = load(grad, i) * c.grad_scale + c.decay * param[i];
      const float p = param[i] - c.lr * d;
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

template <class Grad, class Low, bool nesterov>
struct Momentum {
  static TROUPE_INLINE void run(float* __restrict param, States states, const Grad* __restrict grad,
                                Low* __restrict low, int64_t begin, int64_t end, SgdCoefficients c) {
    float* __restrict buffer = states[0];
    for (int64_t i = begin; i < end; i++) {
      const float d = load(grad, i) * c.grad_scale + c.decay * param[i];
      const float b = c.momentum * buffer[i] + c.rest * d;
      const float p = param[i] - c.lr * (nesterov ? d + c.momentum * b : b);
      buffer[i] = b;
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

template <class Grad, class Low>
using PlainMomentum = Momentum<Grad, Low, false>;
template <class Grad, class Low>
using Nesterov = Momentum<Grad, Low, true>;

void sgd_(at::Tensor param, c10::optional<at::Tensor> momentum_buffer, const at::Tensor& grad,
          c10::optional<at::Tensor> low_precision, at::IntArrayRef segment_ends, at::ArrayRef<double> learning_rates,
          at::ArrayRef<double> weight_decays, double momentum, double dampening, bool nesterov, int64_t step,
          double grad_scale, c10::optional<at::Tensor> scale) {
  const Segments segments{segment_ends, learning_rates, weight_decays};
  const auto coefficients_of = [&](double lr, double weight_decay) {
    return SgdCoefficients{static_cast<float>(lr),       static_cast<float>(weight_decay),
                           static_cast<float>(momentum), step == 1 ? 1.0f : static_cast<float>(1 - dampening),
                           static_cast<float>(grad_scale), nesterov};
  };
  if (!momentum_buffer) return run_step<Sgd>(FlatStep{"sgd_", param, {}, grad, low_precision, segments, scale}, coefficients_of);
  const FlatStep step_of{"sgd_", param, {*momentum_buffer}, grad, low_precision, segments, scale};
  if (nesterov) return run_step<Nesterov>(step_of, coefficients_of);
  run_step<PlainMomentum>(step_of, coefficients_of);
}

template <class Grad, class Low>
struct Lion {
  static TROUPE_INLINE void run(float* __restrict param, States states, const Grad* __restrict grad,
                                Low* __restrict low, int64_t begin, int64_t end, LionCoefficients c) {
    float* __restrict exp_avg = states[0];
    for (int64_t i = begin; i < end; i++) {
      const float g = load(grad, i) * c.grad_scale;
      const float direction = exp_avg[i] * c.beta1 + g * c.beta1_rest;
      const float sign = static_cast<float>((direction > 0.0f) - (direction < 0.0f));
      const float p = param[i] * c.keep - c.lr * sign;
      exp_avg[i] = exp_avg[i] * c.beta2 + g * c.beta2_rest;
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

void lion_(at::Tensor param, at::Tensor exp_avg, const at::Tensor& grad, c10::optional<at::Tensor> low_precision,
           at::IntArrayRef segment_ends, at::ArrayRef<double> learning_rates, at::ArrayRef<double> weight_decays,
           double beta1, double beta2, double grad_scale, c10::optional<at::Tensor> scale) {
  const FlatStep step{"lion_", param, {exp_avg}, grad, low_precision, {segment_ends, learning_rates, weight_decays}, scale};
  run_step<Lion>(step, [&](double lr, double weight_decay) {
    return LionCoefficients{static_cast<float>(1 - lr * weight_decay), static_cast<float>(lr),
                            static_cast<float>(beta1),                 static_cast<float>(1 - beta1),
                            static_cast<float>(beta2),                 static_cast<float>(1 - beta2),
                            static_cast<float>(grad_scale)};
  });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def(
      "sgd_(Tensor(a!) param, Tensor(b!)? momentum_buffer, Tensor grad, Tensor(c!)? low_precision, int[] segment_ends, "
      "float[] learning_rates, float[] weight_decays, float momentum, float dampening, bool nesterov, int step, "
      "float grad_scale, Tensor? scale=None) -> ()");
  m.def(
      "lion_(Tensor(a!) param, Tensor(b!) exp_avg, Tensor grad, Tensor(c!)? low_precision, int[] segment_ends, "
      "float[] learning_rates, float[] weight_decays, float beta1, float beta2, float grad_scale, Tensor? scale=None) -> ()");
}

TROUPE_OPERATORS(m) {
  m.impl("sgd_", sgd_);
  m.impl("lion_", lion_);
}

}  // namespace troupe
