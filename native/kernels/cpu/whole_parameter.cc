// The elementwise parts of optimizers whose step depends on the complete parameter: a direction is written over the gradient,
// then, once its norm is known, taken.
//   lamb_direction_       You et al. 2020, https://arxiv.org/abs/1904.00962
//   adafactor_..._        Shazeer and Stern 2018, https://arxiv.org/abs/1804.04235

#include <torch/library.h>

#include <cmath>

#include "kernels/cpu/flat_step.h"
#include "kernels/register.h"

namespace troupe {
namespace {

// `grad` and `low` of the common shape are not used: the gradient is the third state, overwritten by the direction.
template <class Grad, class Low>
struct LambDirection {
  static TROUPE_INLINE void run(float* __restrict param, States states, const Grad*, Low*, int64_t begin,
                                int64_t end, LambCoefficients c) {
    float* __restrict exp_avg = states[0];
    float* __restrict exp_avg_sq = states[1];
    float* __restrict direction = states[2];
    for (int64_t i = begin; i < end; i++) {
      const float g = direction[i] * c.grad_scale;
      const float m = exp_avg[i] + c.beta1_rest * (g - exp_avg[i]);
      const float v = exp_avg_sq[i] * c.beta2 + (c.beta2_rest * g) * g;
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      direction[i] = (m / c.correction1) / (std::sqrt(v / c.correction2) + c.eps) + c.decay * param[i];
    }
  }
};

void lamb_direction_(at::Tensor grad, at::Tensor param, at::Tensor exp_avg, at::Tensor exp_avg_sq,
                     at::IntArrayRef segment_ends, at::ArrayRef<double> weight_decays, double beta1, double beta2,
                     double eps, int64_t step, double grad_scale) {
  TORCH_CHECK(step >= 1, "[lamb_direction_] expected steps to count from 1, got ", step);
  const Segments segments{segment_ends, weight_decays, weight_decays};
  const auto n = static_cast<double>(step);
  run_step<LambDirection>(
      FlatStep{"lamb_direction_", param, {exp_avg, exp_avg_sq, grad}, grad, c10::nullopt, segments},
      [&](double, double weight_decay) {
        return LambCoefficients{static_cast<float>(1 - beta1),
                                static_cast<float>(beta2),
                                static_cast<float>(1 - beta2),
                                static_cast<float>(1 - std::pow(beta1, n)),
                                static_cast<float>(1 - std::pow(beta2, n)),
                                static_cast<float>(eps),
                                static_cast<float>(weight_decay),
                                static_cast<float>(grad_scale)};
      });
}

template <class Grad, class Low>
struct StepAlong {
  static TROUPE_INLINE void run(float* __restrict param, States, const Grad* __restrict direction,
                                Low* __restrict low, int64_t begin, int64_t end, AlongCoefficients c) {
    for (int64_t i = begin; i < end; i++) {
      const float p = param[i] * c.keep - c.rate * direction[i];
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

// param = keep · param - rate · direction
void step_along_(at::Tensor param, const at::Tensor& direction, c10::optional<at::Tensor> low_precision,
                 at::IntArrayRef segment_ends, at::ArrayRef<double> rates, at::ArrayRef<double> keeps) {
  run_step<StepAlong>(
      FlatStep{"step_along_", param, {}, direction, low_precision, {segment_ends, rates, keeps}},
      [](double rate, double keep) { return AlongCoefficients{static_cast<float>(rate), static_cast<float>(keep)}; });
}

template <class Grad, class Low>
struct BlendDirection {
  static TROUPE_INLINE void run(float* __restrict exp_avg, States states, const Grad*, Low*, int64_t begin,
                                int64_t end, BlendCoefficients c) {
    float* __restrict direction = states[0];
    for (int64_t i = begin; i < end; i++) {
      const float m = exp_avg[i] * c.beta + c.rest * (c.rate * direction[i]);
      exp_avg[i] = m;
      direction[i] = m;
    }
  }
};

// direction = exp_avg = beta · exp_avg + (1 - beta) · rate · direction
void blend_direction_(at::Tensor direction, at::Tensor exp_avg, at::IntArrayRef segment_ends, at::ArrayRef<double> rates,
                      double beta) {
  run_step<BlendDirection>(
      FlatStep{"blend_direction_", exp_avg, {direction}, direction, c10::nullopt, {segment_ends, rates, rates}},
      [&](double rate, double) {
        return BlendCoefficients{static_cast<float>(rate), static_cast<float>(beta), static_cast<float>(1 - beta)};
      });
}

template <class Grad, class Low>
struct AdafactorVector {
  static TROUPE_INLINE void run(float* __restrict exp_avg_sq, States states, const Grad*, Low*,
                                int64_t begin, int64_t end, SecondMomentCoefficients c) {
    float* __restrict direction = states[0];
    for (int64_t i = begin; i < end; i++) {
      const float g = direction[i] * c.grad_scale;
      const float v = exp_avg_sq[i] * c.beta2 + c.beta2_rest * (g * g + c.eps);
      exp_avg_sq[i] = v;
      direction[i] = g / std::sqrt(v);
    }
  }
};

// For parameters of fewer than two dims: the second moment of every element is kept.
void adafactor_vector_(at::Tensor grad, at::Tensor exp_avg_sq, double beta2, double eps, double grad_scale) {
  const int64_t end = grad.numel();
  const double nothing = 0;
  run_step<AdafactorVector>(
      FlatStep{"adafactor_vector_", exp_avg_sq, {grad}, grad, c10::nullopt, {end, nothing, nothing}},
      [&](double, double) {
        return SecondMomentCoefficients{static_cast<float>(beta2), static_cast<float>(1 - beta2), static_cast<float>(eps),
                            static_cast<float>(grad_scale)};
      });
}

struct MatrixRow {
  static TROUPE_INLINE void run(float* __restrict grad, const float* __restrict column_factors, int64_t numel,
                                float row_factor, float scale) {
    for (int64_t i = 0; i < numel; i++) grad[i] = (row_factor * column_factors[i]) * (grad[i] * scale);
  }
};

void scale_matrix(const at::Tensor& grad, const at::Tensor& row_factors, const at::Tensor& column_factors,
                  at::IntArrayRef shape, int64_t begin, double grad_scale) {
  const int64_t rows = shape[1], columns = shape[2];
  float* to = grad.data_ptr<float>();
  const float* of_row = row_factors.data_ptr<float>();
  const float* of_column = column_factors.data_ptr<float>();
  at::parallel_for(0, grad.numel(), kGrainElements, [&](int64_t first, int64_t last) {
    while (first < last) {
      const int64_t row = (begin + first) / columns, column = (begin + first) % columns;
      const int64_t length = std::min(columns - column, last - first);
      run_best<MatrixRow>(to + first, of_column + row / rows * columns + column, length, of_row[row],
                          static_cast<float>(grad_scale));
      first += length;
    }
  });
}

TROUPE_KERNEL(adafactor_matrix, scale_matrix);

// shape: matrices, rows, columns; grad holds elements `begin` and on.
void adafactor_matrix_(at::Tensor grad, const at::Tensor& row_factors, const at::Tensor& column_factors,
                       at::IntArrayRef shape, int64_t begin, double grad_scale) {
  TORCH_CHECK(shape.size() == 3 && begin >= 0 && begin + grad.numel() <= shape[0] * shape[1] * shape[2],
              "[adafactor_matrix_] expected grad to lie within ", shape, ", got ", grad.numel(), " elements from ", begin);
  detail::check_master("adafactor_matrix_", grad, "grad", grad.numel(), grad.device());
  detail::check_master("adafactor_matrix_", row_factors, "row_factors", shape[0] * shape[1], grad.device());
  detail::check_master("adafactor_matrix_", column_factors, "column_factors", shape[0] * shape[2], grad.device());
  adafactor_matrix_kernel(grad, row_factors, column_factors, shape, begin, grad_scale);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def(
      "lamb_direction_(Tensor(a!) grad, Tensor param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, int[] segment_ends, "
      "float[] weight_decays, float beta1, float beta2, float eps, int step, float grad_scale) -> ()");
  m.def(
      "step_along_(Tensor(a!) param, Tensor direction, Tensor(b!)? low_precision, int[] segment_ends, float[] rates, "
      "float[] keeps) -> ()");
  m.def(
      "blend_direction_(Tensor(a!) direction, Tensor(b!) exp_avg, int[] segment_ends, float[] rates, float beta) -> ()");
  m.def("adafactor_vector_(Tensor(a!) grad, Tensor(b!) exp_avg_sq, float beta2, float eps, float grad_scale) -> ()");
  m.def(
      "adafactor_matrix_(Tensor(a!) grad, Tensor row_factors, Tensor column_factors, int[] shape, int begin, "
      "float grad_scale) -> ()");
}

TROUPE_OPERATORS(m) {
  m.impl("lamb_direction_", lamb_direction_);
  m.impl("step_along_", step_along_);
  m.impl("blend_direction_", blend_direction_);
  m.impl("adafactor_vector_", adafactor_vector_);
  m.impl("adafactor_matrix_", adafactor_matrix_);
}

}  // namespace troupe
