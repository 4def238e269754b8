// Offloaded tensors, whose memory is freed for a while. They keep their identity (their shape, their handles, their place in the
// graph), but nothing can be read from them until they have memory again.
#pragma once

#include <vector>

#include "core/tensors/handles.h"

namespace troupe {

// Frees the memory that `handles` name, aliases of one another over all of it, unless anything else in the process
// uses it: a view, another thread, the graph. Returns whether it did; from then on what reads them throws TENSOR_OFFLOADED.
bool give_memory_up(HandleTable& handles, const std::vector<Handle>& aliases);

// Gives them memory again, with any content.
void take_memory_back(HandleTable& handles, const std::vector<Handle>& aliases);

}  // namespace troupe
