// Values on their way from a device to the host, to be read later: a read waits for the value, not for work issued after it.
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
