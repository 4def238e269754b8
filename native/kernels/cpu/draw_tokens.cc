// Draws a token from each row of logits: the first, in order of the vocabulary, at which the cumulative probability of the allowed
// tokens passes the row's uniform number. As in transformers, the temperature applies first, then top_k, then the fewest of these that
// together reach top_p (Holtzman et al. 2019, https://arxiv.org/abs/1904.09751); tokens as likely as the last one kept are kept too.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/drawing.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/sum_exponentials.h"
#include "kernels/register.h"

namespace troupe {
namespace {

template <class Element>
struct LargestLogit {
  static TROUPE_INLINE float run(const Element* x_V, int64_t num_classes) {
    const auto logit = [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(x_V, i); };
    return max_of<kRowLanes>(0, num_classes, -std::numeric_limits<float>::infinity(), logit);
  }
};

template <class Element>
struct TokenWeights {
  static TROUPE_INLINE void run(const Element* x_V, float* __restrict to_V, int64_t num_classes, float max, float scale) {
    for (int64_t i = 0; i < num_classes; i++) to_V[i] = exp_f32((load(x_V, i) - max) * scale);
  }
};

struct WeightSum {
  static TROUPE_INLINE float run(const float* weights, int64_t first, int64_t last) {
    return sum_terms<float, kRowLanes>(first, last, [&](int64_t i) TROUPE_INLINE_LAMBDA { return weights[i]; });
  }
};

void drop_below(std::vector<float>& weights, float least) {
  for (float& weight : weights) {
    if (weight < least) weight = 0.0f;
  }
}

void keep_largest(std::vector<float>& weights, int64_t count) {
  if (count <= 0 || count >= static_cast<int64_t>(weights.size())) return;
  std::vector<float> sorted = weights;
  std::nth_element(sorted.begin(), sorted.begin() + (count - 1), sorted.end(), std::greater<>());
  drop_below(weights, sorted[static_cast<size_t>(count - 1)]);
}

// Sorts no more than are kept, by powers of eight.
void keep_nucleus(std::vector<float>& weights, double share) {
  uint64_t all = 0, units = 0;
  for (const float weight : weights) all += units_of(weight);
  std::vector<float> sorted = weights;
  size_t done = 0;
  for (size_t count = 64; done < sorted.size(); count *= 8) {
    const size_t last = std::min(count, sorted.size());
    const auto begin = sorted.begin();
    if (last < sorted.size())
      std::nth_element(begin + static_cast<long>(done), begin + static_cast<long>(last), sorted.end(), std::greater<>());
    std::sort(begin + static_cast<long>(done), begin + static_cast<long>(last), std::greater<>());
    for (; done < last; done++) {
      units += units_of(sorted[done]);
      if (reach(units, all, share)) return drop_below(weights, sorted[done]);
    }
  }
}

int64_t draw_from(const std::vector<float>& weights, double uniform) {
  const auto size = static_cast<int64_t>(weights.size());
  std::vector<float> sums;
  for (int64_t first = 0; first < size; first += kDrawnPiece) {
    sums.push_back(run_best<WeightSum>(weights.data(), first, std::min(size, first + kDrawnPiece)));
  }
  return token_at(uniform, weights.data(), size, sums.data());
}

template <class Element>
int64_t draw_row(const Element* x_V, int64_t num_classes, const Restriction& restriction, double uniform,
                 std::vector<float>& weights) {
  const float max = run_best<LargestLogit<Element>>(x_V, num_classes);
  if (restriction.temperature == 0.0f) {
    for (int64_t i = 0; i < num_classes; i++) {
      if (load(x_V, i) == max) return i;
    }
    return 0;
  }
  weights.resize(static_cast<size_t>(num_classes));
  run_best<TokenWeights<Element>>(x_V, weights.data(), num_classes, max, 1.0f / restriction.temperature);
  keep_largest(weights, restriction.top_k);
  if (restriction.top_p < 1.0) keep_nucleus(weights, restriction.top_p);
  return draw_from(weights, uniform);
}

at::Tensor draw_rows(const at::Tensor& logits, const at::Tensor& uniforms, const Restriction& restriction) {
  const int64_t num_rows = logits.size(0), num_classes = logits.size(1);
  at::Tensor tokens = at::empty({num_rows}, logits.options().dtype(at::kLong));
  auto* to = tokens.data_ptr<int64_t>();
  const auto* uniform = uniforms.data_ptr<float>();
  with_float_type(logits.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const auto* x_RV = logits.data_ptr<Element>();
    at::parallel_for(0, num_rows, grain_rows(num_classes), [&](int64_t first, int64_t last) {
      std::vector<float> weights;
      for (int64_t row = first; row < last; row++) {
        to[row] = draw_row(x_RV + row * num_classes, num_classes, restriction, uniform[row], weights);
      }
    });
  });
  return tokens;
}

TROUPE_KERNEL(draw_tokens, draw_rows);

at::Tensor draw_tokens(const at::Tensor& logits, const at::Tensor& uniforms, double temperature, int64_t top_k, double top_p) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) > 0 && with_float_type(logits.scalar_type(), [](auto*) {}),
              "[draw_tokens] expected logits to be [rows, classes], float32, bfloat16 or float16, got ", logits.scalar_type(), " ",
              logits.sizes());
  TORCH_CHECK(uniforms.scalar_type() == at::kFloat && uniforms.dim() == 1 && uniforms.size(0) == logits.size(0) &&
                  uniforms.is_contiguous(),
              "[draw_tokens] expected uniforms to be float32, one for each of ", logits.size(0), " rows, got ",
              uniforms.scalar_type(), " ", uniforms.sizes());
  return draw_tokens_kernel(logits.contiguous(), uniforms, Restriction{static_cast<float>(temperature), top_k, top_p});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("draw_tokens(Tensor logits, Tensor uniforms, float temperature, int top_k, float top_p) -> Tensor");
}

TROUPE_OPERATORS(m) { m.impl("draw_tokens", draw_tokens); }

}  // namespace troupe
