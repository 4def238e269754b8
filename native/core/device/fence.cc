#include "core/device/fence.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <thread>
#include <utility>

#include "core/device/device.h"
#include "core/torch_version.h"

namespace troupe {
namespace {

bool has_streams(c10::Device device) { return !device.is_cpu() && !device.is_meta(); }

c10::Stream present_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

}  // namespace

Fence Fence::here(c10::Device device) {
  Fence fence;
  if (!has_streams(device)) return fence;
  fence.event_ = std::make_shared<c10::Event>(device.type());
  fence.event_->record(present_stream(device));
  return fence;
}

void Fence::hold_back() const {
  hold_back(device());
  // The receivers of this thread's messages must wait too, whichever device the fence is of.
  if (ordering_device() != device()) hold_back(ordering_device());
}

void Fence::hold_back(c10::Device device) const {
  if (event_ && event_->device_type() == device.type()) event_->block(present_stream(device));
}

void Fence::wait() const {
  if (!event_) return;
#if TROUPE_TORCH_AT_LEAST(2, 5)
  event_->synchronize();
#else
  while (!event_->query()) std::this_thread::yield();
#endif
}

void Departures::add(Fence fence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fences_.push_back(std::move(fence));
}

void Departures::hold_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Fence& fence : fences_) fence.hold_back();
  fences_.clear();
}

void use_in_stream(const at::Tensor& tensor) {
  if (!tensor.defined() || !has_streams(tensor.device())) return;
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  guard.recordDataPtrOnStream(tensor.storage().data_ptr(), guard.getStream(tensor.device()));
}

}  // namespace troupe
