// The elementwise parts of LAMB and Adafactor, each operation as in kernels/cpu/whole_parameter.cc. The direction, written
// over the gradient, is the last state.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/flat_step.cuh"

namespace troupe::cuda {
namespace {

struct LambDirection {
  using Coefficients = LambCoefficients;
  static constexpr int kStates = 3;
  static constexpr bool kReadsGrad = false, kWritesParam = false;

  static __device__ void step(float& param, float (&states)[4], float, const LambCoefficients& c) {
    const float g = states[2] * c.grad_scale;
    const float m = states[0] + c.beta1_rest * (g - states[0]);
    const float v = states[1] * c.beta2 + (c.beta2_rest * g) * g;
    states[0] = m;
    states[1] = v;
    states[2] = (m / c.correction1) / (sqrtf(v / c.correction2) + c.eps) + c.decay * param;
  }
};

struct StepAlong {
  using Coefficients = AlongCoefficients;
  static constexpr int kStates = 0;
  static constexpr bool kReadsGrad = true, kWritesParam = true;

  static __device__ void step(float& param, float (&)[1], float direction, const AlongCoefficients& c) {
    param = param * c.keep - c.rate * direction;
  }
};

struct BlendDirection {
  using Coefficients = BlendCoefficients;
  static constexpr int kStates = 1;
  static constexpr bool kReadsGrad = false, kWritesParam = true;

  static __device__ void step(float& exp_avg, float (&states)[2], float, const BlendCoefficients& c) {
    const float m = exp_avg * c.beta + c.rest * (c.rate * states[0]);
    exp_avg = m;
    states[0] = m;
  }
};

struct AdafactorVector {
  using Coefficients = SecondMomentCoefficients;
  static constexpr int kStates = 1;
  static constexpr bool kReadsGrad = false, kWritesParam = true;

  static __device__ void step(float& exp_avg_sq, float (&states)[2], float, const SecondMomentCoefficients& c) {
    const float g = states[0] * c.grad_scale;
    const float v = exp_avg_sq * c.beta2 + c.beta2_rest * (g * g + c.eps);
    exp_avg_sq = v;
    states[0] = g / sqrtf(v);
  }
};

struct AdafactorMatrix {
  float* grad;
  MatrixSlice slice;
  const float *row_factors, *column_factors;
  float scale;

  template <int N>
  __device__ void run(int64_t i) const {
#pragma unroll
    for (int j = 0; j < N; j++) {
      const int64_t place = slice.begin + i + j;
      const int64_t row = place / slice.columns;
      const float factor = column_factors[row / slice.rows * slice.columns + place % slice.columns];
      grad[i + j] = (row_factors[row] * factor) * (grad[i + j] * scale);
    }
  }
};

}  // namespace

void launch_step(Stream stream, const StepOf& step, const LambCoefficients* of_segments) {
  launch_flat_step<LambDirection>("lamb_direction_", stream, step, of_segments);
}

void launch_step(Stream stream, const StepOf& step, const AlongCoefficients* of_segments) {
  launch_flat_step<StepAlong>("step_along_", stream, step, of_segments);
}

void launch_step(Stream stream, const StepOf& step, const BlendCoefficients* of_segments) {
  launch_flat_step<BlendDirection>("blend_direction_", stream, step, of_segments);
}

void launch_step(Stream stream, const StepOf& step, const SecondMomentCoefficients* of_segments) {
  launch_flat_step<AdafactorVector>("adafactor_vector_", stream, step, of_segments);
}

void launch_adafactor_matrix(Stream stream, float* grad, const MatrixSlice& slice, const float* row_factors,
                             const float* column_factors, float scale) {
  launch_each("adafactor_matrix_", stream, slice.numel, false,
              AdafactorMatrix{grad, slice, row_factors, column_factors, scale});
}

}  // namespace troupe::cuda
