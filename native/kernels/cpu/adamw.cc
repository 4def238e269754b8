// AdamW over flat buffers in one pass: unscale and clip, moments, decay, update, low-precision copy.
// Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101, with the operations in the order of torch.optim.AdamW.
// It is bound by memory: 28 bytes per parameter with a float32 gradient (4 read, 3 written back).

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"

namespace troupe {
namespace {

// What is the same for every element of a segment; rounded to float once, here.
struct Coefficients {
  float keep;          // 1 - lr * weight_decay
  float beta1_rest;    // 1 - beta1
  float beta2;
  float beta2_rest;    // 1 - beta2
  float root_scale;    // sqrt(1 - beta2^step)
  float eps;
  float step_size;     // lr / (1 - beta1^step)
  float grad_scale;
};

// The reference and the kernel: every operation is one IEEE operation on one element, so all instruction sets, thread
// counts and splits give the same bits.
template <class Grad, class Low>
struct AdamWRange {
  static TROUPE_INLINE void run(float* __restrict param, float* __restrict exp_avg, float* __restrict exp_avg_sq,
                                const Grad* __restrict grad, Low* __restrict low, int64_t begin, int64_t end,
                                Coefficients c) {
    for (int64_t i = begin; i < end; i++) {
      const float g = load(grad, i) * c.grad_scale;
      const float m = exp_avg[i] + c.beta1_rest * (g - exp_avg[i]);
      const float v = exp_avg_sq[i] * c.beta2 + (c.beta2_rest * g) * g;
      const float denominator = std::sqrt(v) / c.root_scale + c.eps;
      const float p = param[i] * c.keep - (c.step_size * m) / denominator;
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      param[i] = p;
      if constexpr (!std::is_void_v<Low>) store(low, i, p);
    }
  }
};

struct Segments {
  c10::IntArrayRef ends;
  std::vector<Coefficients> coefficients;

  // Calls body(begin, end, coefficients) for each piece of [begin, end) that lies in one segment.
  template <class Body>
  void each(int64_t begin, int64_t end, const Body& body) const {
    auto segment = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; segment++) {
      const int64_t piece_end = std::min(end, ends[segment]);
      body(begin, piece_end, coefficients[segment]);
      begin = piece_end;
    }
  }
};

void check_flat(const at::Tensor& tensor, const char* name, int64_t numel) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.numel() == numel && tensor.device().is_cpu(), "[adamw_] ", name,
              " must be a contiguous CPU tensor of ", numel, " elements as param is: got ", tensor.sizes());
}

void check_float(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "[adamw_] ", name, " must be float32: got ", tensor.scalar_type());
}

void check_segments(c10::IntArrayRef ends, c10::ArrayRef<double> rates, c10::ArrayRef<double> decays, int64_t numel) {
  TORCH_CHECK(ends.size() == rates.size() && ends.size() == decays.size(), "[adamw_] each segment must have an end, a ",
              "learning rate and a weight decay: got ", ends.size(), ", ", rates.size(), " and ", decays.size());
  TORCH_CHECK(std::is_sorted(ends.begin(), ends.end()) && (ends.empty() || ends[0] >= 0) &&
                  (ends.empty() ? numel == 0 : ends.back() == numel),
              "[adamw_] segment_ends must rise to the number of elements, ", numel, ": got ", ends);
}

Segments make_segments(c10::IntArrayRef ends, c10::ArrayRef<double> rates, c10::ArrayRef<double> decays, double beta1,
                       double beta2, double eps, int64_t step, double grad_scale) {
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  Segments segments{ends, {}};
  for (size_t i = 0; i < ends.size(); i++) {
    segments.coefficients.push_back({static_cast<float>(1 - rates[i] * decays[i]), static_cast<float>(1 - beta1),
                                     static_cast<float>(beta2), static_cast<float>(1 - beta2),
                                     static_cast<float>(std::sqrt(correction2)), static_cast<float>(eps),
                                     static_cast<float>(rates[i] / correction1), static_cast<float>(grad_scale)});
  }
  return segments;
}

template <class Grad, class Low>
void launch(const at::Tensor& param, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, const at::Tensor& grad,
            Low* low, const Segments& segments) {
  float* p = param.data_ptr<float>();
  float* m = exp_avg.data_ptr<float>();
  float* v = exp_avg_sq.data_ptr<float>();
  const Grad* g = grad.data_ptr<Grad>();
  at::parallel_for(0, param.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
    segments.each(begin, end, [&](int64_t first, int64_t last, const Coefficients& c) {
      run_best<AdamWRange<Grad, Low>>(p, m, v, g, low, first, last, c);
    });
  });
}

template <class Grad>
void launch_for_low(const at::Tensor& param, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const at::Tensor& grad, const c10::optional<at::Tensor>& low_precision, const Segments& segments) {
  if (!low_precision) return launch<Grad, void>(param, exp_avg, exp_avg_sq, grad, nullptr, segments);
  if (low_precision->scalar_type() == at::kBFloat16) {
    return launch<Grad>(param, exp_avg, exp_avg_sq, grad, low_precision->data_ptr<at::BFloat16>(), segments);
  }
  launch<Grad>(param, exp_avg, exp_avg_sq, grad, low_precision->data_ptr<at::Half>(), segments);
}

void adamw_(at::Tensor param, at::Tensor exp_avg, at::Tensor exp_avg_sq, const at::Tensor& grad,
            c10::optional<at::Tensor> low_precision, at::IntArrayRef segment_ends, at::ArrayRef<double> learning_rates,
            at::ArrayRef<double> weight_decays, double beta1, double beta2, double eps, int64_t step,
            double grad_scale) {
  const int64_t numel = param.numel();
  check_flat(param, "param", numel);
  check_flat(exp_avg, "exp_avg", numel);
  check_flat(exp_avg_sq, "exp_avg_sq", numel);
  check_flat(grad, "grad", numel);
  check_float(param, "param");
  check_float(exp_avg, "exp_avg");
  check_float(exp_avg_sq, "exp_avg_sq");
  if (low_precision) {
    check_flat(*low_precision, "low_precision", numel);
    TORCH_CHECK(low_precision->scalar_type() == at::kBFloat16 || low_precision->scalar_type() == at::kHalf,
                "[adamw_] low_precision must be bfloat16 or float16: got ", low_precision->scalar_type());
  }
  TORCH_CHECK(step >= 1, "[adamw_] steps count from 1: got ", step);
  check_segments(segment_ends, learning_rates, weight_decays, numel);
  const Segments segments =
      make_segments(segment_ends, learning_rates, weight_decays, beta1, beta2, eps, step, grad_scale);
  const bool known = with_float_type(grad.scalar_type(), [&](auto* type) {
    using Grad = std::remove_pointer_t<decltype(type)>;
    launch_for_low<Grad>(param, exp_avg, exp_avg_sq, grad, low_precision, segments);
  });
  TORCH_CHECK(known, "[adamw_] grad must be float32, bfloat16 or float16: got ", grad.scalar_type());
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def(
      "adamw_(Tensor(a!) param, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor grad, Tensor(d!)? low_precision, "
      "int[] segment_ends, float[] learning_rates, float[] weight_decays, float beta1, float beta2, float eps, "
      "int step, float grad_scale) -> ()");
}

TORCH_LIBRARY_IMPL(troupe, CPU, m) { m.impl("adamw_", adamw_); }

}  // namespace troupe
