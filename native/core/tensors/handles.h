// The tensors one JavaScript thread holds, named by small integers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/fence.h"

namespace troupe {

// A number that names a tensor of this thread: slot and generation, always > 0 and within 31 bits so that V8 keeps it
// unboxed. A handle whose tensor was released names nothing again until its slot has been reused 1,024 times.
using Handle = int32_t;

// Says that a tensor's memory is read from two threads, and written by none. Its readers own it, its origin only watches it:
// when the last reader is gone, wherever and however it ended, the origin has its rights back.
struct Loan {
  std::shared_ptr<const Loan> upstream;     // what the origin itself had borrowed when it passed the tensor on
  std::shared_ptr<Departures> departures;   // of readers on a device; null for host memory
};

// Restrictions and loans of a handle's tensor.
struct Guard {
  bool read_only = false;                // shared to us, or mapped from a file
  std::shared_ptr<const Loan> borrowed;  // we are a reader of another thread's tensor
  std::weak_ptr<const Loan> lent;        // others read ours
  bool offloaded = false;                // its memory is given up for a while
  std::shared_ptr<Departures> departures{};  // of those who read ours; null where nobody did, and for host memory

  // Nothing is to be known of the tensor, as of nearly all.
  bool is_plain() const {
    const std::weak_ptr<const Loan> none;
    return !read_only && !borrowed && !offloaded && !departures && !lent.owner_before(none) && !none.owner_before(lent);
  }
};

// Not thread-safe: each environment has its own.
class HandleTable {
 public:
  // Names a tensor. Throws CodedError TENSOR_TOO_MANY when the thread holds 2^21 already.
  Handle put(at::Tensor tensor, const Guard& guard = {});

  // The tensor as a place in the graph: its memory may be away. Throws TENSOR_DISPOSED.
  const at::Tensor& identity(Handle handle, const char* op) const { return expect(handle, op, "self").tensor; }
  // The tensor, to be read. Throws TENSOR_DISPOSED or TENSOR_OFFLOADED, naming `op` and the argument.
  const at::Tensor& get(Handle handle, const char* op, const char* argument = "self") const;
  // The tensor, while no other thread reads it: throws also TENSOR_SHARED.
  const at::Tensor& get_exclusive(Handle handle, const char* op, const char* argument = "self") const;
  // The tensor, to be written: throws also TENSOR_SHARED and TENSOR_READ_ONLY.
  const at::Tensor& get_writable(Handle handle, const char* op, const char* argument = "self") const;
  // The rights of a live handle, inherited by its views.
  const Guard& guard(Handle handle) const;
  // The same to be changed, by a loan or an offload.
  Guard& changeable_guard(Handle handle);

  // Forgets a tensor; false when the handle named none.
  bool release(Handle handle);

  int64_t live() const { return live_; }

 private:
  // Small, because every call of an operator goes through some: nearly all tensors have no guard.
  struct Slot {
    at::Tensor tensor;
    std::unique_ptr<Guard> guard;  // null: a plain one
    uint32_t generation = 1;
    bool used = false;
  };

  static constexpr int kSlotBits = 21;
  static constexpr uint32_t kMaxSlots = 1u << kSlotBits;
  static constexpr uint32_t kMaxGeneration = (1u << (31 - kSlotBits)) - 1;

  static uint32_t slot_of(Handle handle) { return static_cast<uint32_t>(handle) & (kMaxSlots - 1); }
  static uint32_t generation_of(Handle handle) { return static_cast<uint32_t>(handle) >> kSlotBits; }
  const Slot* find(Handle handle) const;
  const Slot& expect(Handle handle, const char* op, const char* argument) const;

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  int64_t live_ = 0;
};

}  // namespace troupe
