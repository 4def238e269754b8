#include "core/tensors/offloaded.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

namespace troupe {
namespace {

bool is_whole(const at::Tensor& tensor) {
  return !tensor.is_meta() && tensor.is_contiguous() && tensor.storage_offset() == 0 && tensor.nbytes() > 0 &&
         tensor.nbytes() == tensor.storage().nbytes();
}

}  // namespace

bool give_memory_up(HandleTable& handles, const std::vector<Handle>& aliases) {
  const at::Tensor& first = handles.get_exclusive(aliases.front(), "giveMemoryUp");
  const auto* const memory = first.storage().unsafeGetStorageImpl();
  if (!is_whole(first) || first.storage().use_count() != aliases.size()) return false;
  for (const Handle alias : aliases) {
    const at::Tensor& tensor = handles.get_exclusive(alias, "giveMemoryUp");
    // The table's own is the one reference that may be.
    if (tensor.storage().unsafeGetStorageImpl() != memory || tensor.use_count() != 1) return false;
  }
  first.storage().set_data_ptr(at::DataPtr(nullptr, first.device()));
  for (const Handle alias : aliases) handles.changeable_guard(alias).offloaded = true;
  return true;
}

void take_memory_back(HandleTable& handles, const std::vector<Handle>& aliases) {
  const at::Tensor& first = handles.identity(aliases.front(), "takeMemoryBack");
  const c10::DeviceGuard guard(first.device());
  first.storage().set_data_ptr(c10::GetAllocator(first.device().type())->allocate(first.storage().nbytes()));
  for (const Handle alias : aliases) handles.changeable_guard(alias).offloaded = false;
}

}  // namespace troupe
