// Paged memory: pages that can go back to the system for a while and are filled again in place. Their addresses stay, so every tensor
// over them, in any thread or process, stays valid.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/tensors/handles.h"

namespace troupe {

// A 1-D tensor over new memory of at least that many bytes, rounded up to pages; of any content. Where this process shares
// memory with others, they can share this too. Counted under the present tag while it is occupied. Throws CodedError
// SHARED_MEMORY_FULL.
at::Tensor paged_memory(int64_t bytes);

// Gives the pages of all of a tensor's memory back: what is read there from now on is zero, in every thread and process, and
// nobody should. Twice is once. Throws CodedError TENSOR_ARGUMENT for memory that is not paged.
void vacate_pages(const at::Tensor& tensor);

// Has the memory counted again, and where processes share it reserved; its content is zero. Throws as the above do.
void occupy_pages(const at::Tensor& tensor);

// From now on the tensors that the handles name are refused to readers of this thread, or given to them again.
void mark_offloaded(HandleTable& handles, const std::vector<Handle>& tensors, bool offloaded);

}  // namespace troupe
