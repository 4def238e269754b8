// Memory of the device: made, resized, copied to and from the host, read as a number.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>

#include "core/torch_version.h"
#include "devices/sim/device.h"
#include "devices/sim/kernels.h"
#include "devices/sim/late.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

using OptionalDtype = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};

c10::Device wanted(OptionalDevice device) {
  const bool named = device.has_value() && device->has_index();
  return {c10::DeviceType::PrivateUse1, named ? device->index() : current_device()};
}

at::Tensor empty(at::IntArrayRef size, OptionalDtype dtype, OptionalLayout, OptionalDevice device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(wanted(device));
  return at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, OptionalDtype dtype, OptionalLayout,
                         OptionalDevice device, std::optional<bool>) {
  const c10::DeviceGuard guard(wanted(device));
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys, c10::dtype_or_default(dtype));
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!format || *format == at::MemoryFormat::Contiguous, "[resize_] expected contiguous memory on sim, got ", *format);
  const size_t bytes = at::detail::computeStorageNbytesContiguous(size, self.itemsize(), static_cast<size_t>(self.storage_offset()));
  if (bytes > self.storage().nbytes()) resize_memory(self.storage(), bytes);
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

// The host's tensor without its graph; it keeps the memory alive.
at::Tensor host_memory(const at::Tensor& tensor) {
  at::Tensor alias = at::detail::make_tensor<at::TensorImpl>(c10::Storage(tensor.storage()),
                                                             c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  alias.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return alias;
}

uint64_t push_copy(Queue& queue, const at::Tensor& to, const at::Tensor& from) {
  return push_late(queue, "copy_", [to, from] {
    const at::AutoDispatchBelowADInplaceOrView below;
    to.copy_(from);
  });
}

// Until the copy has come, its target is poison too: a host that reads too early must not find what it found last time.
void poison_host(const at::Tensor& target) {
  const at::AutoDispatchBelowADInplaceOrView below;
  if (target.is_contiguous()) {
    std::memset(target.mutable_data_ptr(), 0xFF, target.nbytes());
  } else if (target.is_floating_point()) {
    target.fill_(std::numeric_limits<double>::quiet_NaN());
  } else {
    target.fill_(-1);
  }
}

void copy_from_host(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  StandIns stand_ins(StandIns::Over::device);
  Queue& queue = current_queue(to.device().index());
  push_copy(queue, stand_ins.of(to), host_memory(from));
  if (non_blocking) return;
  count_host_wait();
  queue.synchronize();
}

void copy_to_host(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  StandIns stand_ins(StandIns::Over::device);
  Queue& queue = current_queue(from.device().index());
  const at::Tensor target = host_memory(to);
  if (non_blocking) poison_host(target);
  push_copy(queue, target, stand_ins.of(from));
  if (non_blocking) return;
  count_read_back();
  queue.synchronize();
}

// In the source's stream, after the target's work; the target's stream waits for it.
void copy_within(const at::Tensor& to, const at::Tensor& from) {
  StandIns stand_ins(StandIns::Over::device);
  Queue& source = current_queue(from.device().index());
  Queue& target = current_queue(to.device().index());
  Marker::block(Marker::in(target), source);
  push_copy(source, stand_ins.of(to), stand_ins.of(from));
  Marker::block(Marker::in(source), target);
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source) || self.numel() == 0) return self;
  const at::Tensor from = source.sizes() == self.sizes() ? source : source.expand(self.sizes());
  if (!is_sim(from)) {
    copy_from_host(self, from, non_blocking);
  } else if (!is_sim(self)) {
    copy_to_host(self, from, non_blocking);
  } else {
    copy_within(self, from);
  }
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  at::Tensor target = to;
  return copy_(target, self, non_blocking);
}

at::Scalar local_scalar(const at::Tensor& self) {
  StandIns stand_ins(StandIns::Over::device);
  count_read_back();
  current_queue(self.device().index()).synchronize();
  const at::AutoDispatchBelowADInplaceOrView below;
  return stand_ins.of(self).item();
}

void record_stream(at::Tensor& self, at::Stream stream) { record_use(self.storage().data_ptr(), queue_of(stream)); }

// `observe`: returns an alias, since the values stay on the device.
at::Tensor observed(const at::Tensor& x, int64_t) { return x.alias(); }

}  // namespace

void register_copies(torch::Library& aten) {
  aten.impl("empty.memory_format", empty);
  aten.impl("empty_strided", empty_strided);
  aten.impl("resize_", resize_);
  aten.impl("copy_", copy_);
  aten.impl("_copy_from", copy_from);
  aten.impl("_local_scalar_dense", local_scalar);
  aten.impl("record_stream", record_stream);
}

void register_observe(torch::Library& troupe) { troupe.impl("observe", observed); }

}  // namespace troupe::sim

#endif
