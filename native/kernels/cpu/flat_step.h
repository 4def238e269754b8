// Shared code of the fused optimizer steps: one pass over a flat stretch of parameters, its states and its gradient, which also
// writes the low-precision copy. Every operation of a body is one IEEE operation on one element, so all instruction sets,
// thread counts and splits give the same bits.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/gradient_scale.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/step_coefficients.h"
#include "kernels/register.h"

namespace troupe {

// Stretches of the buffer with numbers of their own, by where they end.
struct Segments {
  at::IntArrayRef ends;
  at::ArrayRef<double> learning_rates;
  at::ArrayRef<double> weight_decays;
};

struct FlatStep {
  const char* op;  // for messages
  at::Tensor param;
  std::array<at::Tensor, 3> states;  // undefined where there is none
  at::Tensor grad;
  c10::optional<at::Tensor> low_precision;
  Segments segments;
  // A factor from `gradient_scales` that stays on the device, so that the host need not wait for it: the gradient is multiplied by it too.
  c10::optional<at::Tensor> scale = c10::nullopt;
};

// Null where there is none.
using States = std::array<float*, 3>;

namespace detail {

inline void check_flat(const char* op, const at::Tensor& tensor, const char* name, int64_t numel,
                       c10::Device device) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.numel() == numel && tensor.device() == device, "[", op, "] expected ", name,
              " to be a contiguous tensor of ", numel, " elements on ", device, " as param is, got ", tensor.sizes(), " on ",
              tensor.device());
}

inline void check_master(const char* op, const at::Tensor& tensor, const char* name, int64_t numel,
                         c10::Device device) {
  check_flat(op, tensor, name, numel, device);
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "[", op, "] expected ", name, " to be float32, got ", tensor.scalar_type());
}

inline void check_segments(const char* op, const Segments& segments, int64_t numel) {
  const at::IntArrayRef ends = segments.ends;
  TORCH_CHECK(ends.size() == segments.learning_rates.size() && ends.size() == segments.weight_decays.size(), "[", op,
              "] expected each segment to have an end, a learning rate and a weight decay, got ", ends.size(), ", ",
              segments.learning_rates.size(), " and ", segments.weight_decays.size());
  TORCH_CHECK(std::is_sorted(ends.begin(), ends.end()) && (ends.empty() || ends[0] >= 0) &&
                  (ends.empty() ? numel == 0 : ends.back() == numel),
              "[", op, "] expected segment_ends to rise to the number of elements, ", numel, ", got ", ends);
}

inline void check(const FlatStep& step) {
  const int64_t numel = step.param.numel();
  const c10::Device device = step.param.device();
  check_master(step.op, step.param, "param", numel, device);
  for (const at::Tensor& state : step.states) {
    if (state.defined()) check_master(step.op, state, "each state", numel, device);
  }
  check_flat(step.op, step.grad, "grad", numel, device);
  if (step.low_precision) {
    check_flat(step.op, *step.low_precision, "low_precision", numel, device);
    const auto dtype = step.low_precision->scalar_type();
    TORCH_CHECK(dtype == at::kBFloat16 || dtype == at::kHalf, "[", step.op,
                "] expected low_precision to be bfloat16 or float16, got ", dtype);
  }
  check_segments(step.op, step.segments, numel);
  if (step.scale) {
    check_flat(step.op, *step.scale, "scale", 2, device);
    TORCH_CHECK(step.scale->scalar_type() == at::kDouble, "[", step.op, "] expected scale to be float64, got ",
                step.scale->scalar_type());
  }
}

// Calls body(begin, end, segment) for each piece of [begin, end) that lies in one segment.
template <class Body>
void each_segment(at::IntArrayRef ends, int64_t begin, int64_t end, const Body& body) {
  auto segment = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
  for (; begin < end; segment++) {
    const int64_t piece_end = std::min(end, ends[segment]);
    body(begin, piece_end, segment);
    begin = piece_end;
  }
}

template <template <class, class> class Body, class Grad, class Low, class Coefficients>
void launch(const FlatStep& step, Low* low, const std::vector<Coefficients>& coefficients) {
  float* param = step.param.data_ptr<float>();
  States states{};
  for (size_t i = 0; i < states.size(); i++) {
    if (step.states[i].defined()) states[i] = step.states[i].data_ptr<float>();
  }
  const Grad* grad = step.grad.data_ptr<Grad>();
  at::parallel_for(0, step.param.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
    each_segment(step.segments.ends, begin, end, [&](int64_t first, int64_t last, size_t segment) {
      run_best<Body<Grad, Low>>(param, states, grad, low, first, last, coefficients[segment]);
    });
  });
}

template <template <class, class> class Body, class Coefficients>
void step_on_cpu(const FlatStep& step, std::vector<Coefficients>& coefficients) {
  if (step.scale) {
    const double* scale = step.scale->data_ptr<double>();
    if (scale[1] != 0) return;
    if constexpr (has_grad_scale<Coefficients>) {
      for (auto& of_segment : coefficients) of_segment.grad_scale = scaled_by(of_segment.grad_scale, scale);
    }
  }
  const bool known = with_float_type(step.grad.scalar_type(), [&](auto* type) {
    using Grad = std::remove_pointer_t<decltype(type)>;
    if (!step.low_precision) {
      launch<Body, Grad, void>(step, nullptr, coefficients);
    } else if (step.low_precision->scalar_type() == at::kBFloat16) {
      launch<Body, Grad>(step, step.low_precision->data_ptr<at::BFloat16>(), coefficients);
    } else {
      launch<Body, Grad>(step, step.low_precision->data_ptr<at::Half>(), coefficients);
    }
  });
  TORCH_CHECK(known, "[", step.op, "] expected grad to be float32, bfloat16 or float16, got ", step.grad.scalar_type());
}

}  // namespace detail

inline bool lies_on_cuda(const FlatStep& step) { return lies_on_cuda(step.param); }

// Body<Grad, Low>::run(param, states, grad, low, begin, end, coefficients): `low` is a null pointer to void where there is
// no low-precision copy. `coefficients_of(learning_rate, weight_decay)` returns the coefficients that all elements of a segment share.
template <template <class, class> class Body, class CoefficientsOf>
void run_step(const FlatStep& step, const CoefficientsOf& coefficients_of) {
  using Coefficients = decltype(coefficients_of(0.0, 0.0));
  TROUPE_KERNEL(flat_step, detail::step_on_cpu<Body, Coefficients>);
  detail::check(step);
  std::vector<Coefficients> coefficients;
  for (size_t i = 0; i < step.segments.ends.size(); i++) {
    coefficients.push_back(coefficients_of(step.segments.learning_rates[i], step.segments.weight_decays[i]));
  }
  flat_step_kernel(step, coefficients);
}

}  // namespace troupe
