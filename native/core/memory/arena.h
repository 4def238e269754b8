// Blocks of memory cut from one address space: best fit, split when too large, merged with free neighbours when given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "core/memory/address_space.h"

namespace troupe {

struct LedgerEntry;

// The header in front of every block's data, one cache line: freeing the data reads its size and owner here.
struct alignas(64) Block {
  size_t bytes;        // of the block, header included
  Block* below;        // the neighbour at lower addresses, null for the first
  bool free;
  int32_t size_class;  // of the small-block cache; -1 for blocks that go straight to the arena
  // While in use:
  LedgerEntry* entry;
  size_t asked_bytes;
  // While in a small-block cache:
  Block* next_cached;

  void* data() { return this + 1; }
  static Block* of(void* data) { return static_cast<Block*>(data) - 1; }
  Block* above() { return reinterpret_cast<Block*>(reinterpret_cast<char*>(this) + bytes); }
};
static_assert(sizeof(Block) == 64, "data must stay aligned to the cache line");

// Thread-safe. Memory held from the system stays at most an eighth (at least 64 MiB) above the highest sum of blocks that
// were in use at one time: when fresh pages would pass that, free ones are given back first.
class Arena {
 public:
  // May hold `limit_bytes` of blocks at one time.
  explicit Arena(size_t limit_bytes);

  // A block whose data has room for `data_bytes`, or null when there is no memory for it.
  Block* take(size_t data_bytes);
  // The same `count` times under one lock; returns a chain through next_cached, shorter or null when memory ends.
  Block* take_many(size_t data_bytes, size_t count);

  void give(Block* block);
  // Every block of a chain through next_cached.
  void give_chain(Block* chain);

  // Gives all free pages back to the system.
  void purge();

  size_t resident_bytes();

 private:
  using FreeBlocks = std::set<std::pair<size_t, Block*>>;  // smallest first, then lowest address

  Block* take_locked(size_t bytes);
  void give_locked(Block* block);
  Block* grow(size_t bytes);
  void split(Block* block, size_t bytes);
  void trim(size_t resident_limit_bytes);
  void insert_free(Block* block);

  std::mutex mutex_;
  AddressSpace space_;
  FreeBlocks free_;
  Block* topmost_ = nullptr;
  const size_t limit_bytes_;
  size_t used_bytes_ = 0;
  size_t peak_used_bytes_ = 0;
};

}  // namespace troupe
