#include "core/device/late_values.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace troupe {

LateValues::LateValues(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  // A GPU copies by itself only to memory that stays where it is.
  const auto options = at::TensorOptions().dtype(tensor.scalar_type()).pinned_memory(tensor.is_cuda());
  host_ = at::empty(tensor.sizes(), options);
  host_.copy_(tensor.detach(), /*non_blocking=*/true);
  arrived_ = Fence::here(tensor.device());
}

const at::Tensor& LateValues::wait() const {
  arrived_.wait();
  return host_;
}

}  // namespace troupe
