#include "devices/sim/stand_ins.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

// A tensor of the same shape over other memory.
at::Tensor laid_over(c10::Storage storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor tensor =
      at::detail::make_tensor<at::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  tensor.unsafeGetTensorImpl()->set_storage_offset(like.storage_offset());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::Storage over_device(const c10::Storage& storage) {
  void* const reached = storage.data() == nullptr ? nullptr : arena_of(storage.device().index()).reachable(storage.data());
  return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), c10::DataPtr(reached, c10::Device(c10::kCPU)));
}

c10::Storage over_zeros(size_t bytes) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator(), true);
  if (bytes > 0) std::memset(storage.mutable_data(), 0, bytes);
  return storage;
}

c10::Storage over_nothing(size_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, c10::GetAllocator(c10::kMeta), true);
}

}  // namespace

c10::Storage StandIns::memory_of(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  for (const Memory& memory : memories_) {
    if (memory.original.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return memory.stand_in;
  }
  const c10::Storage stand_in = over_ == Over::device  ? over_device(storage)
                                : over_ == Over::zeros ? over_zeros(storage.nbytes())
                                                       : over_nothing(storage.nbytes());
  memories_.push_back({storage, stand_in, tensor.key_set()});
  return stand_in;
}

at::Tensor StandIns::of(const at::Tensor& tensor) {
  if (!is_sim(tensor)) return tensor;
  for (const Pair& pair : pairs_) {
    if (pair.original.is_same(tensor)) return pair.stand_in;
  }
  const c10::DispatchKey key = over_ == Over::nothing ? c10::DispatchKey::Meta : c10::DispatchKey::CPU;
  pairs_.push_back({tensor, laid_over(memory_of(tensor), tensor, key)});
  return pairs_.back().stand_in;
}

c10::IValue StandIns::of(const c10::IValue& argument) {
  if (argument.isDevice() && argument.toDevice().is_privateuseone()) {
    return c10::Device(over_ == Over::nothing ? c10::kMeta : c10::kCPU);
  }
  return changed(argument, [this](const at::Tensor& tensor) { return of(tensor); });
}

torch::jit::Stack StandIns::of(const torch::jit::Stack& arguments) {
  torch::jit::Stack stack;
  for (const c10::IValue& argument : arguments) stack.push_back(of(argument));
  return stack;
}

at::Tensor StandIns::original(const at::Tensor& result) const {
  if (!result.defined()) return result;
  for (const Pair& pair : pairs_) {
    if (pair.stand_in.is_same(result)) return pair.original;
  }
  for (const Memory& memory : memories_) {
    if (memory.stand_in.unsafeGetStorageImpl() != result.storage().unsafeGetStorageImpl()) continue;
    at::Tensor view = at::detail::make_tensor<at::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(memory.original), memory.keys,
                                                              result.dtype());
    view.unsafeGetTensorImpl()->set_storage_offset(result.storage_offset());
    view.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides());
    return view;
  }
  return {};
}

}  // namespace troupe::sim

#endif
