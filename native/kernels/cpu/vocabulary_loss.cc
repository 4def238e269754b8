// Cross entropy where a row's logits may be spread over several ranks: what each rank finds out about its own classes, and
// the gradient once the ranks have agreed on logsumexp. x_RV: R rows of the V classes first_class, first_class + 1, ..., which may
// have others between them.
//
//   loss_r = a_r logsumexp_r - b_r x_r,target - c_r sum_v w_v x_rv      dx_rv = a_r p_rv - b_r [v = target] - c_r w_v
//
// with p_rv = exp(x_rv - logsumexp_r): b is the weight of the target, c of label smoothing, a the sum of all.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "core/dispatch/describe.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/sum_exponentials.h"
#include "kernels/cpu/vocabulary_classes.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Element>
struct WeightedSum {
  static TROUPE_INLINE float run(const Element* x_V, const float* weights_V, int64_t num_classes) {
    return sum_terms<float, kRowLanes>(0, num_classes,
                                       [&](int64_t i) TROUPE_INLINE_LAMBDA { return weights_V[i] * load(x_V, i); });
  }
};

template <class Element>
struct SmoothedProbabilities {
  static TROUPE_INLINE void run(Element* x_V, const float* weights_V, int64_t num_classes, float logsumexp, float a, float c) {
    for (int64_t i = 0; i < num_classes; i++) {
      store(x_V, i, exp_f32(load(x_V, i) - logsumexp) * a - c * weights_V[i]);
    }
  }
};

bool has_rows(const at::Tensor& logits) {
  return logits.is_contiguous() || (logits.stride(1) == 1 && logits.stride(0) >= logits.size(1));
}

Classes check(const char* op, const at::Tensor& logits, const at::Tensor& targets, int64_t first, int64_t all,
              int64_t ignore_index, const c10::optional<at::Tensor>& weights) {
  TORCH_CHECK(logits.dim() == 2 && has_rows(logits) && with_float_type(logits.scalar_type(), [](auto*) {}), "[", op,
              "] expected logits to be [rows, classes], each row contiguous, float32, bfloat16 or float16, got ", dtype_name(logits.scalar_type()), " ",
              logits.sizes());
  TORCH_CHECK(targets.scalar_type() == at::kLong && targets.is_contiguous() && targets.dim() == 1 &&
                  targets.size(0) == logits.size(0),
              "[", op, "] expected targets to be int64, one for each of ", logits.size(0), " rows, got ", dtype_name(targets.scalar_type()), " ",
              targets.sizes());
  TORCH_CHECK(!weights || (weights->scalar_type() == at::kFloat && weights->is_contiguous() && weights->dim() == 1 &&
                           weights->size(0) == logits.size(1)),
              "[", op, "] expected weights to be float32, one for each of ", logits.size(1), " classes, got ",
              dtype_name(weights ? weights->scalar_type() : at::kFloat), " ", weights ? weights->sizes() : at::IntArrayRef());
  return {targets.data_ptr<int64_t>(), first, all, ignore_index, weights ? weights->data_ptr<float>() : nullptr};
}

// float32 [4, R]: the largest logit, the sum of exp(x - largest), the target's logit where it is here and else 0, and the
// weighted sum of the logits, 0 without weights; 0, 1, 0 and 0 of a row that is ignored, which is not read.
at::Tensor make_statistics(const at::Tensor& logits, const Classes& classes) {
  const int64_t num_rows = logits.size(0), num_classes = logits.size(1);
  for (int64_t row = 0; row < num_rows; row++) {
    const int64_t id = classes.targets[row];
    TORCH_CHECK_INDEX(id == classes.ignore_index || (id >= 0 && id < classes.all), "[vocabulary_statistics] expected targets to be ",
                      classes.ignore_index, " (ignored) or within 0 and ", classes.all - 1, ", got ", id, " in row ", row);
  }
  const at::Tensor out = at::empty({4, num_rows}, logits.options().dtype(at::kFloat));
  auto* to = out.data_ptr<float>();
  with_float_type(logits.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* x_RV = logits.data_ptr<Element>();
    at::parallel_for(0, num_rows, grain_rows(num_classes), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; row++) {
        if (classes.targets[row] == classes.ignore_index) {
          for (int64_t i = 0; i < 4; i++) to[i * num_rows + row] = i == 1 ? 1.0f : 0.0f;
          continue;
        }
        const Element* x_V = x_RV + row * logits.stride(0);
        const MaxAndSum sums = run_best<SumExponentials<Element>>(x_V, num_classes);
        const int64_t target = classes.targets[row] - classes.first;
        const bool here = target >= 0 && target < num_classes;
        to[row] = sums.max;
        to[num_rows + row] = sums.sum;
        to[2 * num_rows + row] = here ? load(x_V, target) : 0.0f;
        to[3 * num_rows + row] =
            classes.weights == nullptr ? 0.0f : run_best<WeightedSum<Element>>(x_V, classes.weights, num_classes);
      }
    });
  });
  return out;
}

TROUPE_KERNEL(vocabulary_statistics, make_statistics);

at::Tensor statistics(const at::Tensor& logits, const at::Tensor& targets, int64_t first_class, int64_t num_all_classes,
                      int64_t ignore_index, const c10::optional<at::Tensor>& weights) {
  return vocabulary_statistics_kernel(
      logits, check("vocabulary_statistics", logits, targets, first_class, num_all_classes, ignore_index, weights));
}

// Overwrites the logits by the gradient. `coefficients`: a, b and c, float32 [3, R]; a row where all are 0 gets zeros,
// whatever its logits are.
void make_gradient(const at::Tensor& logits, const at::Tensor& logsumexp, const Classes& classes,
                   const at::Tensor& coefficients) {
  const int64_t num_rows = logits.size(0), num_classes = logits.size(1);
  const auto* logsumexps = logsumexp.data_ptr<float>();
  const auto* coefficient = coefficients.data_ptr<float>();
  with_float_type(logits.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    Element* x_RV = logits.data_ptr<Element>();
    at::parallel_for(0, num_rows, grain_rows(num_classes), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; row++) {
        Element* x_V = x_RV + row * logits.stride(0);
        const float a = coefficient[row], b = coefficient[num_rows + row], c = coefficient[2 * num_rows + row];
        if (a == 0.0f && b == 0.0f && c == 0.0f) {
          std::fill(x_V, x_V + num_classes, Element(0.0f));
          continue;
        }
        const int64_t target = classes.targets[row] - classes.first;
        const bool here = target >= 0 && target < num_classes;
        const float own = here ? exp_f32(load(x_V, target) - logsumexps[row]) * a - b : 0.0f;
        if (classes.weights == nullptr) {
          run_best<ScaledProbabilities<Element>>(x_V, x_V, num_classes, logsumexps[row], a);
        } else {
          run_best<SmoothedProbabilities<Element>>(x_V, classes.weights, num_classes, logsumexps[row], a, c);
        }
        if (here) store(x_V, target, classes.weights == nullptr ? own : own - c * classes.weights[target]);
      }
    });
  });
}

TROUPE_KERNEL(vocabulary_gradient, make_gradient);

void gradient(const at::Tensor& logits, const at::Tensor& logsumexp, const at::Tensor& targets, int64_t first_class,
              const at::Tensor& coefficients, const c10::optional<at::Tensor>& weights) {
  const Classes classes = check("vocabulary_gradient_", logits, targets, first_class, 0, 0, weights);
  const int64_t num_rows = logits.size(0);
  TORCH_CHECK(logsumexp.scalar_type() == at::kFloat && logsumexp.is_contiguous() && logsumexp.numel() == num_rows &&
                  coefficients.scalar_type() == at::kFloat && coefficients.is_contiguous() &&
                  coefficients.numel() == 3 * num_rows,
              "[vocabulary_gradient_] expected logsumexp to be float32 [rows] and coefficients float32 [3, rows], got ",
              logsumexp.sizes(), " and ", coefficients.sizes());
  vocabulary_gradient_kernel(logits, logsumexp, classes, coefficients);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def(
      "vocabulary_statistics(Tensor logits, Tensor targets, int first_class, int num_classes, int ignore_index, "
      "Tensor? weights) -> Tensor");
  m.def(
      "vocabulary_gradient_(Tensor(a!) logits, Tensor logsumexp, Tensor targets, int first_class, Tensor coefficients, "
      "Tensor? weights) -> ()");
}

TROUPE_OPERATORS(m) {
  m.impl("vocabulary_statistics", statistics);
  m.impl("vocabulary_gradient_", gradient);
}

}  // namespace troupe
