// Tensors on their way between threads: a process-wide table that owns them while nobody else does.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensors/handles.h"

namespace troupe {

// The reference to a tensor that a message carries. The first attach consumes it; after that, or a release, it names nothing.
struct RefId {
  uint32_t id;
  uint32_t generation;
};

enum class RefKind : uint8_t {
  move,   // the sender has given it up
  share,  // both read, nobody writes until the receiver has released it
};

// All four are safe from every thread. A tensor crosses without its graph: what arrives is detached.

// Puts a tensor of `handles` into the table for `owner`, the actor to be answered for it. `move` releases the handle.
// Throws TENSOR_DISPOSED, and TENSOR_SHARED when a tensor that others still read is to be moved.
RefId make_ref(HandleTable& handles, Handle handle, RefKind kind, const std::string& owner);

// Takes the tensor out of the table into `handles`. Throws TENSOR_REF_GONE when the ref was attached or released before.
Handle attach_ref(HandleTable& handles, RefId ref);

// A tensor in the table, with the guard of its receiver's handle and the actor that owns it.
struct PendingRef {
  at::Tensor tensor;
  Guard guard;
  std::string owner;
  Fence ready;  // behind what its sender has computed of it
};

// Takes a tensor out of the table, and puts one in, without any handle. The first throws TENSOR_REF_GONE.
PendingRef take_ref(RefId ref);
RefId put_ref(PendingRef pending);

// Drops a ref that nobody will attach; false when it is gone already.
bool release_ref(RefId ref);

// Drops every ref of an actor that died; returns how many.
int64_t release_refs_of(const std::string& owner);

// Refs in the table now.
int64_t live_refs();

}  // namespace troupe
