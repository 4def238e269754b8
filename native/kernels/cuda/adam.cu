// Adam in its three forms, each operation as in kernels/cpu/adam.cc.
#include "kernels/cuda/flat_step.cuh"

namespace troupe::cuda {
namespace {

template <class C, bool coupled>
struct TorchAdam {
  using Coefficients = C;
  static constexpr int kStates = 2;
  static constexpr bool kReadsGrad = true, kWritesParam = true;

  static __device__ void step(float& param, float (&states)[3], float grad, const C& c) {
    float g = grad * c.grad_scale;
    if constexpr (coupled) g += c.decay * param;
    const float m = states[0] + c.beta1_rest * (g - states[0]);
    const float v = states[1] * c.beta2 + (c.beta2_rest * g) * g;
    const float denominator = sqrtf(v) / c.root_scale + c.eps;
    const float kept = coupled ? param : param * c.keep;
    param = kept - (c.step_size * m) / denominator;
    states[0] = m;
    states[1] = v;
  }
};

struct BMTrainAdam {
  using Coefficients = BMTrainAdamCoefficients;
  static constexpr int kStates = 2;
  static constexpr bool kReadsGrad = true, kWritesParam = true;

  static __device__ void step(float& param, float (&states)[3], float grad, const Coefficients& c) {
    const float g = grad * c.grad_scale;
    const float m = c.beta1 * states[0] + c.beta1_rest * g;
    const float v = c.beta2 * states[1] + c.beta2_rest * g * g;
    const float denominator = sqrtf(v / c.correction2) + c.eps;
    param = param - c.lr * (m / c.correction1) / denominator - c.decay * param;
    states[0] = m;
    states[1] = v;
  }
};

}  // namespace

void launch_step(Stream stream, const StepOf& step, const AdamWCoefficients* of_segments) {
  launch_flat_step<TorchAdam<AdamWCoefficients, false>>("adamw_", stream, step, of_segments);
}

void launch_step(Stream stream, const StepOf& step, const AdamCoefficients* of_segments) {
  launch_flat_step<TorchAdam<AdamCoefficients, true>>("adam_", stream, step, of_segments);
}

void launch_step(Stream stream, const StepOf& step, const BMTrainAdamCoefficients* of_segments) {
  launch_flat_step<BMTrainAdam>("bmtrain_adam_", stream, step, of_segments);
}

}  // namespace troupe::cuda
