#include "kernels/cpu/cross_entropy_rows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/dispatch/describe.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/sum_exponentials.h"

namespace troupe {
Targets check_targets(const char* op, const at::Tensor& targets, int64_t num_rows, int64_t num_classes,
                      int64_t ignore_index) {
  TORCH_CHECK(targets.scalar_type() == at::kLong && targets.dim() == 1 && targets.size(0) == num_rows, "[", op,
              "] expected targets to be int64, one for each of ", num_rows, " rows, got ", dtype_name(targets.scalar_type()), " ",
              targets.sizes());
  // A copy of its own: ids that were checked here are indices there, in backward too.
  Targets checked{targets.clone(at::MemoryFormat::Contiguous), ignore_index, 0};
  const int64_t* ids = checked.ids.data_ptr<int64_t>();
  for (int64_t row = 0; row < num_rows; row++) {
    if (ids[row] == ignore_index) continue;
    TORCH_CHECK_INDEX(ids[row] >= 0 && ids[row] < num_classes, "[", op, "] expected targets to be ", ignore_index,
                      " (ignored) or within 0 and ", num_classes - 1, ", got ", ids[row], " in row ", row);
    checked.num_counted++;
  }
  return checked;
}

at::Tensor cross_entropy_rows(const at::Tensor& logits_RV, const Targets& targets, int64_t first_row, double& loss_sum) {
  const int64_t num_rows = logits_RV.size(0), num_classes = logits_RV.size(1);
  const at::Tensor logsumexp_R = at::empty({num_rows}, logits_RV.options().dtype(at::kFloat));
  auto* logsumexps = logsumexp_R.data_ptr<float>();
  const int64_t* ids = targets.ids.data_ptr<int64_t>() + first_row;
  std::vector<double> losses(static_cast<size_t>(num_rows), 0.0);
  with_float_type(logits_RV.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* x_RV = logits_RV.data_ptr<Element>();
    at::parallel_for(0, num_rows, grain_rows(num_classes), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; row++) {
        if (ids[row] == targets.ignore_index) continue;
        const Element* x_V = x_RV + row * logits_RV.stride(0);
        const MaxAndSum sums = run_best<SumExponentials<Element>>(x_V, num_classes);
        const double log_sum = std::log(static_cast<double>(sums.sum));
        logsumexps[row] = static_cast<float>(sums.max + log_sum);
        losses[static_cast<size_t>(row)] = sums.max + log_sum - load(x_V, ids[row]);
      }
    });
  });
  for (double loss : losses) loss_sum += loss;
  return logsumexp_R;
}

void cross_entropy_gradient(const at::Tensor& logits_RV, const at::Tensor& logsumexp_R, const Targets& targets,
                            int64_t first_row, float scale, const at::Tensor& to_RV) {
  const int64_t num_rows = logits_RV.size(0), num_classes = logits_RV.size(1);
  const auto* logsumexps = logsumexp_R.data_ptr<float>();
  const int64_t* ids = targets.ids.data_ptr<int64_t>() + first_row;
  with_float_type(logits_RV.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* x_RV = logits_RV.data_ptr<Element>();
    Element* to = to_RV.data_ptr<Element>();
    at::parallel_for(0, num_rows, grain_rows(num_classes), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; row++) {
        Element* to_V = to + row * to_RV.stride(0);
        if (ids[row] == targets.ignore_index) {
          std::fill(to_V, to_V + num_classes, Element(0.0f));
          continue;
        }
        const Element* x_V = x_RV + row * logits_RV.stride(0);
        const float probability = exp_f32(load(x_V, ids[row]) - logsumexps[row]);
        run_best<ScaledProbabilities<Element>>(x_V, to_V, num_classes, logsumexps[row], scale);
        store(to_V, ids[row], (probability - 1.0f) * scale);
      }
    });
  });
}

}  // namespace troupe
