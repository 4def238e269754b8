// Small blocks, kept per thread and by size class: an operator on a 4x4 tensor must not wait for a lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/arena.h"

namespace troupe {

constexpr size_t kMaxSmallBytes = size_t{32} << 10;

// A block for `data_bytes` <= kMaxSmallBytes, or null when memory ends. Any thread may give it back.
Block* take_small(Arena& arena, size_t data_bytes);
void give_small(Arena& arena, Block* block);

// Returns what the calling thread keeps to `arena`. Happens by itself when a thread ends.
void flush_small(Arena& arena);

}  // namespace troupe
