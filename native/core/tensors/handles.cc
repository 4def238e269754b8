#include "core/tensors/handles.h"

#include <string>

#include "core/tensors/exported_tensor.h"
#include "core/error.h"

namespace troupe {
namespace {

[[noreturn]] void refuse(const char* code, const char* op, const char* argument, const char* expectation) {
  throw CodedError(code, std::string("[") + op + "] expected " + argument + " to be " + expectation, {{"op", op}, {"argument", argument}});
}

// Whether others still use the tensor: those of other processes say so where nobody looks, unless they are in the way.
bool is_lent(const Guard& guard) {
  for (bool settled = false;; settled = true) {
    if (guard.lent.expired()) return false;
    if (settled) return true;
    settle_exports(true);
  }
}

}  // namespace

Handle HandleTable::put(at::Tensor tensor, const Guard& guard) {
  if (free_.empty()) {
    if (slots_.size() == kMaxSlots) {
      throw CodedError("TENSOR_TOO_MANY", "[tensor] expected at most 2097152 tensors at once in one thread, got one more (open a "
                                          "scope() around what repeats)");
    }
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.tensor = std::move(tensor);
  if (!guard.is_plain()) slot.guard = std::make_unique<Guard>(guard);
  slot.used = true;
  ++live_;
  return static_cast<Handle>(slot.generation << kSlotBits | index);
}

const Guard& HandleTable::guard(Handle handle) const {
  static const Guard plain;
  const auto& guard = slots_[slot_of(handle)].guard;
  return guard ? *guard : plain;
}

Guard& HandleTable::changeable_guard(Handle handle) {
  auto& guard = slots_[slot_of(handle)].guard;
  if (!guard) guard = std::make_unique<Guard>();
  return *guard;
}

const HandleTable::Slot* HandleTable::find(Handle handle) const {
  const uint32_t index = slot_of(handle);
  if (handle <= 0 || index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[index];
  return slot.used && slot.generation == generation_of(handle) ? &slot : nullptr;
}

const HandleTable::Slot& HandleTable::expect(Handle handle, const char* op, const char* argument) const {
  const Slot* slot = find(handle);
  if (slot == nullptr) {
    refuse("TENSOR_DISPOSED", op, argument,
           "a live tensor of this thread, got one that was disposed, or whose scope has ended (return it from the scope, "
           "or keep() it)");
  }
  return *slot;
}

const at::Tensor& HandleTable::get(Handle handle, const char* op, const char* argument) const {
  const Slot& slot = expect(handle, op, argument);
  if (slot.guard && slot.guard->offloaded) {
    refuse("TENSOR_OFFLOADED", op, argument,
           "a tensor with its memory, got one that is offloaded, as a block's input is until backward and its parameters are "
           "between its calls (read them within the block, or leave that offload out)");
  }
  return slot.tensor;
}

const at::Tensor& HandleTable::get_exclusive(Handle handle, const char* op, const char* argument) const {
  const at::Tensor& tensor = get(handle, op, argument);
  if (is_lent(guard(handle))) {
    refuse("TENSOR_SHARED", op, argument, "read by nobody else, got one that another thread still reads (wait until it has released its ref)");
  }
  // A reader that released the tensor may still be reading it in its stream.
  if (guard(handle).departures) guard(handle).departures->hold_back();
  return tensor;
}

const at::Tensor& HandleTable::get_writable(Handle handle, const char* op, const char* argument) const {
  const at::Tensor& tensor = get_exclusive(handle, op, argument);
  if (guard(handle).read_only) {
    refuse("TENSOR_READ_ONLY", op, argument,
           "a tensor that may be written, got one that another thread shares or that is mapped from a file (clone() it)");
  }
  return tensor;
}

bool HandleTable::release(Handle handle) {
  if (find(handle) == nullptr) return false;
  Slot& slot = slots_[slot_of(handle)];
  // Out of the slot first: the destructor may run autograd code of any depth.
  const at::Tensor dying = std::move(slot.tensor);
  slot.tensor = at::Tensor();
  slot.guard.reset();
  slot.used = false;
  slot.generation = slot.generation == kMaxGeneration ? 1 : slot.generation + 1;
  free_.push_back(slot_of(handle));
  --live_;
  return true;
}

}  // namespace troupe
