#include "core/device/beside.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <utility>

namespace troupe {
namespace {

// The calling thread's stream of copies.
c10::Stream stream_of_copies(c10::Device device) {
  thread_local std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, c10::Stream> streams;
  const std::pair<c10::DeviceType, c10::DeviceIndex> key{device.type(), device.index()};
  const auto known = streams.find(key);
  if (known != streams.end()) return known->second;
  return streams.emplace(key, c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)).first->second;
}

}  // namespace

at::Tensor empty_pinned(at::ScalarType dtype, int64_t numel, c10::Device device) {
  return at::empty({numel}, at::TensorOptions().dtype(dtype).pinned_memory(device.is_cuda()));
}

Fence copy_beside(const at::Tensor& into, const at::Tensor& from) {
  const at::NoGradGuard no_grad;
  const at::Tensor& on_device = into.device().is_cpu() ? from : into;
  const c10::Device device = on_device.device();
  const Fence before = Fence::here(device);
  const c10::StreamGuard guard(stream_of_copies(device));
  before.hold_back(device);
  into.copy_(from, /*non_blocking=*/true);
  use_in_stream(on_device);
  return Fence::here(device);
}

}  // namespace troupe
