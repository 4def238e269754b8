// Copies between a device and the host's memory, in streams of their own: neither computation nor host waits for them.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/device/fence.h"

namespace troupe {

// A new 1-D tensor in memory of the host that a device copies from and to by itself.
at::Tensor empty_pinned(at::ScalarType dtype, int64_t numel, c10::Device device);

// Begins to copy between a device and the host, behind what the calling thread's stream of the device holds, in another stream:
// the place behind it. The device's memory is not given to others before; the host's must live and stay as it is until then.
Fence copy_beside(const at::Tensor& into, const at::Tensor& from);

}  // namespace troupe
