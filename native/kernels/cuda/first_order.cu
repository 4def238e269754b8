// SGD and Lion, each operation as in kernels/cpu/first_order.cc.
#include "kernels/cuda/flat_step.cuh"

namespace troupe::cuda {
namespace {

struct Sgd {
  using Coefficients = SgdCoefficients;
  static constexpr int kStates = 0;
  static constexpr bool kReadsGrad = true, kWritesParam = true;

  static __device__ void step(float& param, float (&)[1], float grad, const SgdCoefficients& c) {
    param = param - c.lr * (grad * c.grad_scale + c.decay * param);
  }
};

struct Momentum {
  using Coefficients = SgdCoefficients;
  static constexpr int kStates = 1;
  static constexpr bool kReadsGrad = true, kWritesParam = true;

  static __device__ void step(float& param, float (&states)[2], float grad, const SgdCoefficients& c) {
    const float d = grad * c.grad_scale + c.decay * param;
    const float b = c.momentum * states[0] + c.rest * d;
    param = param - c.lr * (c.nesterov ? d + c.momentum * b : b);
    states[0] = b;
  }
};

struct Lion {
  using Coefficients = LionCoefficients;
  static constexpr int kStates = 1;
  static constexpr bool kReadsGrad = true, kWritesParam = true;

  static __device__ void step(float& param, float (&states)[2], float grad, const LionCoefficients& c) {
    const float g = grad * c.grad_scale;
    const float direction = states[0] * c.beta1 + g * c.beta1_rest;
    const auto sign = static_cast<float>((direction > 0.0f) - (direction < 0.0f));
    param = param * c.keep - c.lr * sign;
    states[0] = states[0] * c.beta2 + g * c.beta2_rest;
  }
};

}  // namespace

void launch_step(Stream stream, const StepOf& step, const SgdCoefficients* of_segments) {
  if (step.states[0] == nullptr) return launch_flat_step<Sgd>("sgd_", stream, step, of_segments);
  launch_flat_step<Momentum>("sgd_", stream, step, of_segments);
}

void launch_step(Stream stream, const StepOf& step, const LionCoefficients* of_segments) {
  launch_flat_step<Lion>("lion_", stream, step, of_segments);
}

}  // namespace troupe::cuda
