// Adam over flat buffers in one pass: unscale and clip, moments, decay, update, low-precision copy. Three forms:
//   adamw_         decoupled decay, with the operations in the order of torch.optim.AdamW
//   adam_          decay added to the gradient, in the order of torch.optim.Adam; BMTrain's for float32 parameters
//   bmtrain_adam_  decoupled decay, in the order of BMTrain's kernels for half precision
// Kingma and Ba 2015, https://arxiv.org/abs/1412.6980; Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101.
// They are bound by memory: 28 bytes per parameter with a float32 gradient (4 read, 3 written back).

#include <torch/library.h>

#include <cmath>

#include "kernels/cpu/flat_step.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Grad, class Low, bool coupled>
struct TorchAdam {
  static TROUPE_INLINE void run(float* __restrict param, States moments, const Grad* __restrict grad,
                                Low* __restrict low, int64_t begin, int64_t end, AdamNumbers c) {
    float* __restrict exp_avg = moments[0];
    float* __restrict exp_avg_sq = moments[1];
    for (int64_t i = begin; i < end; i++) {
      float g = load(grad, i) * c.grad_scale;
      if constexpr (coupled) g += c.decay * param[i];
      const float m = exp_avg[i] + c.beta1_rest * (g - exp_avg[i]);
      const float v = exp_avg_sq[i] * c.beta2 + (c.beta2_rest * g) * g;
      const float denominator = std::sqrt(v) / c.root_scale + c.eps;
      const float kept = coupled ? param[i] : param[i] * c.keep;
      const float p = kept - (c.step_size * m) / denominator;
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

template <class Grad, class Low>
using AdamW = TorchAdam<Grad, Low, false>;
template <class Grad, class Low>
using Adam = TorchAdam<Grad, Low, true>;

template <class Grad, class Low>
struct BMTrainAdam {
  static TROUPE_INLINE void run(float* __restrict param, States moments, const Grad* __restrict grad,
                                Low* __restrict low, int64_t begin, int64_t end, AdamNumbers c) {
    float* __restrict exp_avg = moments[0];
    float* __restrict exp_avg_sq = moments[1];
    for (int64_t i = begin; i < end; i++) {
      const float g = load(grad, i) * c.grad_scale;
      const float m = c.beta1 * exp_avg[i] + c.beta1_rest * g;
      const float v = c.beta2 * exp_avg_sq[i] + c.beta2_rest * g * g;
      const float denominator = std::sqrt(v / c.correction2) + c.eps;
      const float p = param[i] - c.lr * (m / c.correction1) / denominator - c.decay * param[i];
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

using Step = FlatStep;

struct Moments {
  double beta1, beta2, eps;
  int64_t step;
  double grad_scale;
};

AdamNumbers coefficients_of(const Moments& numbers, double lr, double weight_decay) {
  const double correction1 = 1 - std::pow(numbers.beta1, static_cast<double>(numbers.step));
  const double correction2 = 1 - std::pow(numbers.beta2, static_cast<double>(numbers.step));
  return {static_cast<float>(1 - lr * weight_decay), static_cast<float>(weight_decay),
          static_cast<float>(numbers.beta1),         static_cast<float>(1 - numbers.beta1),
          static_cast<float>(numbers.beta2),         static_cast<float>(1 - numbers.beta2),
          static_cast<float>(correction1),           static_cast<float>(correction2),
          static_cast<float>(std::sqrt(correction2)), static_cast<float>(numbers.eps),
          static_cast<float>(lr),                    static_cast<float>(lr / correction1),
          static_cast<float>(numbers.grad_scale)};
}

// BMTrain computes in float what torch rounds once.
AdamNumbers bmtrain_coefficients_of(const Moments& numbers, double lr, double weight_decay) {
  AdamNumbers c = coefficients_of(numbers, lr, weight_decay);
  c.beta1_rest = 1.0f - c.beta1;
  c.beta2_rest = 1.0f - c.beta2;
  c.decay = c.lr * static_cast<float>(weight_decay);
  return c;
}

template <template <class, class> class Body, class Coefficients, class CoefficientsOf>
void run(const Step& step, const Moments& numbers, const CoefficientsOf& of) {
  TORCH_CHECK(numbers.step >= 1, "[", step.op, "] expected steps to count from 1, got ", numbers.step);
  run_step<Body>(step, [&](double lr, double weight_decay) { return Coefficients{of(numbers, lr, weight_decay)}; });
}

#define TROUPE_ADAM_ARGUMENTS                                                                                        \
  at::Tensor param, at::Tensor exp_avg, at::Tensor exp_avg_sq, const at::Tensor &grad,                               \
      c10::optional<at::Tensor> low_precision, at::IntArrayRef segment_ends, at::ArrayRef<double> learning_rates,    \
      at::ArrayRef<double> weight_decays, double beta1, double beta2, double eps, int64_t step, double grad_scale,         \
      c10::optional<at::Tensor> scale

#define TROUPE_ADAM_STEP(op) \
  Step{op, param, {exp_avg, exp_avg_sq}, grad, low_precision, {segment_ends, learning_rates, weight_decays}, scale}

void adamw_(TROUPE_ADAM_ARGUMENTS) {
  run<AdamW, AdamWCoefficients>(TROUPE_ADAM_STEP("adamw_"), {beta1, beta2, eps, step, grad_scale}, coefficients_of);
}

void adam_(TROUPE_ADAM_ARGUMENTS) {
  run<Adam, AdamCoefficients>(TROUPE_ADAM_STEP("adam_"), {beta1, beta2, eps, step, grad_scale}, coefficients_of);
}

void bmtrain_adam_(TROUPE_ADAM_ARGUMENTS) {
  run<BMTrainAdam, BMTrainAdamCoefficients>(TROUPE_ADAM_STEP("bmtrain_adam_"), {beta1, beta2, eps, step, grad_scale}, bmtrain_coefficients_of);
}

const std::string kSchema =
    "(Tensor(a!) param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor grad, Tensor(d!)? low_precision, "
    "int[] segment_ends, float[] learning_rates, float[] weight_decays, float beta1, float beta2, float eps, "
    "int step, float grad_scale, Tensor? scale=None) -> ()";

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  for (const char* op : {"adamw_", "adam_", "bmtrain_adam_"}) m.def((op + kSchema).c_str());
}

TROUPE_OPERATORS(m) {
  m.impl("adamw_", adamw_);
  m.impl("adam_", adam_);
  m.impl("bmtrain_adam_", bmtrain_adam_);
}

}  // namespace troupe
