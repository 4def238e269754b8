// The mean cross entropy of rows of logits: what `cross_entropy` and `linear_cross_entropy` share.
//
//   loss_r = log sum_v exp(x_rv) - x_r,target        dx_rv = (exp(x_rv - logsumexp_r) - [v = target]) * scale
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe {

struct Targets {
  at::Tensor ids;          // int64 [rows], contiguous
  int64_t ignore_index;
  int64_t num_counted;     // rows whose target is not ignore_index

  // 1 / num_counted, the weight of a row in the mean; 0 when no row counts, so that gradients are 0 while the loss, 0 / 0,
  // is NaN: as libtorch has it.
  float row_weight() const { return num_counted == 0 ? 0.0f : 1.0f / static_cast<float>(num_counted); }
};

// Throws, naming `op`, when a target is neither ignore_index nor within 0 and num_classes - 1, or the shapes do not fit.
Targets check_targets(const char* op, const at::Tensor& targets, int64_t num_rows, int64_t num_classes,
                      int64_t ignore_index);

// logsumexp of each row of `logits_RV` (rows without gaps in them; float32, bfloat16 or float16) as float32 [R]. Adds the losses of rows
// first_row to first_row + R of `targets` to `loss_sum`, in row order.
at::Tensor cross_entropy_rows(const at::Tensor& logits_RV, const Targets& targets, int64_t first_row, double& loss_sum);

// Writes the gradient of scale * (sum of the rows' losses) to `to_RV`, which may be `logits_RV` itself.
void cross_entropy_gradient(const at::Tensor& logits_RV, const at::Tensor& logsumexp_R, const Targets& targets,
                            int64_t first_row, float scale, const at::Tensor& to_RV);

}  // namespace troupe
