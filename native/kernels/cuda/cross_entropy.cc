// Mean cross entropy where nothing may be read back: how many rows count, and a loss's incoming gradient, stay on the device.
// See kernels/cpu/cross_entropy.cc and kernels/cpu/linear_cross_entropy.cc.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/autograd/differentiable.h"
#include "core/dispatch/describe.h"
#include "core/invariance.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

// Products over the vocabulary fill a GPU from a few thousand rows on.
constexpr int64_t kMaxChunkBytes = int64_t{1} << 30;

// If rows of logits do not begin at multiples of 16 bytes, tensor cores read them in pieces: products with GPT-2's 50,257 classes
// took 2.2 times as long on an H100 as with 50,304.
constexpr int64_t kClassesAtOnce = 64;

// weight_VD, and rows of zeros after it up to a whole number of kClassesAtOnce.
at::Tensor padded(const at::Tensor& weight_VD) {
  const int64_t classes = weight_VD.size(0), past = classes % kClassesAtOnce;
  if (past == 0 || classes < kClassesAtOnce) return weight_VD;
  const at::Tensor weight_PD = at::zeros({classes - past + kClassesAtOnce, weight_VD.size(1)}, weight_VD.options());
  weight_PD.narrow(0, 0, classes).copy_(weight_VD);
  return weight_PD;
}

LogitRows logit_rows(const at::Tensor& logits) { return {logits.size(0), logits.size(1), logits.stride(0)}; }

struct CountedTargets {
  at::Tensor ids;         // int64 [rows], contiguous
  at::Tensor row_weight;  // float32 scalar: 1 / rows that count, or 0
  at::Tensor count;       // float64 scalar
  int64_t ignore_index;

  const int64_t* from(int64_t row) const { return ids.data_ptr<int64_t>() + row; }
};

CountedTargets count_targets(const char* op, const Call& call, const at::Tensor& targets, const at::Tensor& rows,
                             int64_t ignore_index) {
  TORCH_CHECK(targets.scalar_type() == at::kLong && targets.dim() == 1 && targets.size(0) == rows.size(0) &&
                  targets.device() == rows.device(),
              "[", op, "] expected targets to be int64, one for each of ", rows.size(0), " rows, on ", rows.device(), ", got ",
              dtype_name(targets.scalar_type()), " ", targets.sizes(), " on ", targets.device());
  const at::TensorOptions options = rows.options();
  const CountedTargets counted{targets.clone(at::MemoryFormat::Contiguous), at::empty({}, options.dtype(at::kFloat)),
                               at::empty({}, options.dtype(at::kDouble)), ignore_index};
  launch_count_targets(call.stream(), counted.from(0), rows.size(0), ignore_index, floats(counted.row_weight),
                       counted.count.data_ptr<double>());
  return counted;
}

at::Tensor mean_of(const Call& call, const at::Tensor& losses, const CountedTargets& targets) {
  const at::Tensor loss = at::empty({}, losses.options().dtype(at::kFloat));
  launch_mean_loss(call.stream(), losses.data_ptr<double>(), losses.numel(), targets.count.data_ptr<double>(), floats(loss));
  return loss;
}

struct LossAndGradients {
  at::Tensor loss;       // float32 scalar
  at::Tensor hidden_ND;  // gradients, times `factor` for an incoming gradient of 1; undefined where not wanted
  at::Tensor weight_VD;
  at::Tensor factor;     // float32 scalar; undefined: 1
};

struct WantedGradients {
  bool hidden, weight;
};

LossAndGradients chunked_loss(const at::Tensor& hidden_ND, const at::Tensor& weight_VD, const at::Tensor& target_ids,
                              int64_t ignore_index, WantedGradients wanted) {
  const Call call(hidden_ND);
  const CountedTargets targets = count_targets("linear_cross_entropy", call, target_ids, hidden_ND, ignore_index);
  const at::Tensor weight_PD = padded(weight_VD);
  const int64_t num_rows = hidden_ND.size(0), num_classes = weight_VD.size(0), stride = weight_PD.size(0);
  const int64_t row_bytes = std::max<int64_t>(1, stride * static_cast<int64_t>(hidden_ND.element_size()));
  const int64_t chunk_rows = std::max<int64_t>(1, kMaxChunkBytes / row_bytes);
  const bool only_chunk = num_rows > 0 && num_rows <= chunk_rows;
  LossAndGradients out;
  // float16 cannot hold p / rows, and a loss scale would come too late: the rows' weight is left to backward.
  if (hidden_ND.scalar_type() == at::kHalf) out.factor = targets.row_weight;
  const float* scale = out.factor.defined() ? nullptr : floats(targets.row_weight);
  if (wanted.hidden) out.hidden_ND = at::empty_like(hidden_ND);
  if (wanted.weight && !only_chunk) out.weight_VD = at::zeros(weight_PD.sizes(), weight_VD.options().dtype(at::kFloat));
  const at::Tensor losses = at::empty({num_rows}, hidden_ND.options().dtype(at::kDouble));
  for (int64_t first = 0; first < num_rows; first += chunk_rows) {
    const at::Tensor hidden_RD = hidden_ND.narrow(0, first, std::min(chunk_rows, num_rows - first));
    const at::Tensor logits_RP = at::mm(hidden_RD, weight_PD.t());
    const LogitRows rows{hidden_RD.size(0), num_classes, stride};
    const at::Tensor logsumexp_R = at::empty({rows.rows}, hidden_ND.options().dtype(at::kFloat));
    launch_cross_entropy_rows(call.stream(), format_of(logits_RP), rows, logits_RP.data_ptr(), targets.from(first),
                              ignore_index, floats(logsumexp_R), losses.data_ptr<double>() + first);
    if (!wanted.hidden && !wanted.weight) continue;
    const Variant gradients;
    launch_cross_entropy_gradient(call.stream(), format_of(logits_RP), rows, logits_RP.data_ptr(), floats(logsumexp_R),
                                  targets.from(first), ignore_index, scale, nullptr, logits_RP.data_ptr());
    if (wanted.hidden) {
      at::Tensor to_RD = out.hidden_ND.narrow(0, first, rows.rows);
      at::mm_out(to_RD, logits_RP, weight_PD);
    }
    if (!wanted.weight) continue;
    const at::Tensor dweight = at::mm(logits_RP.t(), hidden_RD);
    if (only_chunk) {
      out.weight_VD = dweight;
    } else {
      out.weight_VD.add_(dweight);  // in float32: bfloat16 would lose the small ones
    }
  }
  if (wanted.weight) out.weight_VD = out.weight_VD.narrow(0, 0, num_classes).to(weight_VD.scalar_type());
  out.loss = mean_of(call, losses, targets);
  return out;
}

// Mean losses, differentiable. A target that is no class makes the loss NaN, for nothing is read back to refuse it.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target_ids, int64_t ignore_index) {
  const Call call(logits);
  const at::Tensor logits_RV = logits.detach().contiguous();
  const LogitRows rows = logit_rows(logits_RV);
  at::Tensor loss, logsumexp_R;
  CountedTargets targets;
  without_recording([&] {
    targets = count_targets("cross_entropy", call, target_ids, logits_RV, ignore_index);
    logsumexp_R = at::empty({logits_RV.size(0)}, logits_RV.options().dtype(at::kFloat));
    const at::Tensor losses = at::empty({logits_RV.size(0)}, logits_RV.options().dtype(at::kDouble));
    launch_cross_entropy_rows(call.stream(), format_of(logits_RV), rows, logits_RV.data_ptr(), targets.from(0), ignore_index,
                              floats(logsumexp_R), losses.data_ptr<double>());
    loss = mean_of(call, losses, targets);
  });
  record("cross_entropy", {logits}, {loss}, {logits_RV, logsumexp_R, targets.ids, targets.row_weight},
         [rows, ignore_index](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const Call back(saved[0]);
           const at::Tensor dlogits = at::empty_like(saved[0]), upstream = as_float(gradients[0]);
           launch_cross_entropy_gradient(back.stream(), format_of(saved[0]), rows, saved[0].data_ptr(), floats(saved[1]),
                                         saved[2].data_ptr<int64_t>(), ignore_index, floats(saved[3]), floats(upstream),
                                         dlogits.data_ptr());
           return {dlogits};
         });
  return loss;
}

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                int64_t ignore_index) {
  const WantedGradients wanted{wants_gradient({hidden}), wants_gradient({weight})};
  const LossAndGradients out = without_recording([&] {
    return chunked_loss(hidden.detach().contiguous(), weight.detach().contiguous(), targets, ignore_index, wanted);
  });
  record("linear_cross_entropy", {hidden, weight}, {out.loss}, {out.hidden_ND, out.weight_VD, out.factor},
         [](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const at::Tensor scale = saved[2].defined() ? gradients[0].mul(saved[2]) : gradients[0];
           Tensors scaled;
           for (size_t i = 0; i < 2; i++) scaled.push_back(saved[i].defined() ? saved[i].mul(scale) : saved[i]);
           return scaled;
         });
  return out.loss;
}

at::Tensor vocabulary_statistics(const at::Tensor& logits, const Classes& classes) {
  const Call call(logits);
  const at::Tensor out = at::empty({4, logits.size(0)}, logits.options().dtype(at::kFloat));
  launch_vocabulary_statistics(call.stream(), format_of(logits), logit_rows(logits), logits.data_ptr(), classes, floats(out));
  return out;
}

void vocabulary_gradient(const at::Tensor& logits, const at::Tensor& logsumexp, const Classes& classes,
                         const at::Tensor& coefficients) {
  const Call call(logits);
  launch_vocabulary_gradient(call.stream(), format_of(logits), logit_rows(logits), logits.data_ptr(), floats(logsumexp), classes,
                             floats(coefficients));
}

TROUPE_CUDA_KERNEL(cross_entropy, cross_entropy);
TROUPE_CUDA_KERNEL(linear_cross_entropy, linear_cross_entropy);
TROUPE_CUDA_KERNEL(vocabulary_statistics, vocabulary_statistics);
TROUPE_CUDA_KERNEL(vocabulary_gradient, vocabulary_gradient);

}  // namespace
}  // namespace troupe::cuda
