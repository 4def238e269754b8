// Values of a device on their way to the host, for whoever asks later: nobody waits for what comes behind them.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/device/fence.h"

namespace troupe {

class LateValues {
 public:
  // Begins to copy a tensor's elements, behind what the calling thread's stream holds. A tensor of the host is copied at once.
  explicit LateValues(const at::Tensor& tensor);

  // The elements in host memory, like the tensor. Waits until they have come.
  const at::Tensor& wait() const;

 private:
  at::Tensor host_;
  Fence arrived_;
};

}  // namespace troupe
