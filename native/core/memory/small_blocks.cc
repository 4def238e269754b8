#include "core/memory/small_blocks.h"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

// Classes: multiples of 64 bytes up to 1 KiB, then four per doubling (at most a quarter of a block is waste).
constexpr size_t kStepBytes = 64;
constexpr size_t kLinearBytes = 1024;
constexpr int32_t kLinearClasses = kLinearBytes / kStepBytes;
constexpr int32_t kNumClasses = kLinearClasses + 4 * 5;  // five doublings from 1 to 32 KiB
constexpr size_t kMaxBlocksPerClass = 64;
constexpr size_t kMaxBytesPerClass = size_t{128} << 10;

int32_t log2_floor(size_t value) { return 63 - __builtin_clzll(value); }

int32_t class_of(size_t bytes) {
  if (bytes <= kLinearBytes) return static_cast<int32_t>((bytes - 1) / kStepBytes);
  const int32_t doubling = log2_floor(bytes - 1);  // 2^doubling < bytes <= 2^(doubling + 1)
  const auto quarter = static_cast<int32_t>((bytes - 1) >> (doubling - 2)) & 3;
  return kLinearClasses + 4 * (doubling - log2_floor(kLinearBytes)) + quarter;
}

size_t bytes_of(int32_t size_class) {
  if (size_class < kLinearClasses) return static_cast<size_t>(size_class + 1) * kStepBytes;
  const int32_t above = size_class - kLinearClasses;
  return (kLinearBytes << (above / 4)) / 4 * static_cast<size_t>(5 + above % 4);
}

size_t max_blocks(int32_t size_class) { return std::min(kMaxBlocksPerClass, kMaxBytesPerClass / bytes_of(size_class)); }

// The end of a thread destroys its cache, and may free tensors afterwards: then blocks go to the arena one by one.
thread_local bool cache_ended = false;

struct Cache {
  struct List {
    Block* first = nullptr;
    size_t length = 0;
  };
  std::array<List, kNumClasses> lists;
  Arena* arena = nullptr;

  ~Cache() {
    cache_ended = true;
    for (List& list : lists) drop(list, 0);
  }

  // Gives blocks back until `length` are left.
  void drop(List& list, size_t length) {
    if (list.length <= length) return;
    Block* chain = nullptr;
    for (; list.length > length; list.length--) {
      Block* block = list.first;
      list.first = block->next_cached;
      block->next_cached = chain;
      chain = block;
    }
    arena->give_chain(chain);
  }
};

thread_local Cache cache;

Block* refill(Arena& arena, Cache::List& list, int32_t size_class) {
  cache.arena = &arena;
  list.first = arena.take_many(bytes_of(size_class), max_blocks(size_class) / 2);
  for (Block* block = list.first; block; block = block->next_cached) list.length++;
  return list.first;
}

}  // namespace

Block* take_small(Arena& arena, size_t data_bytes) {
  const int32_t size_class = class_of(data_bytes);
  Block* block = nullptr;
  if (cache_ended) {
    block = arena.take(bytes_of(size_class));
  } else {
    Cache::List& list = cache.lists[static_cast<size_t>(size_class)];
    block = list.first ? list.first : refill(arena, list, size_class);
    if (block) {
      list.first = block->next_cached;
      list.length--;
    }
  }
  if (block) block->size_class = size_class;
  return block;
}

void give_small(Arena& arena, Block* block) {
  if (cache_ended) return arena.give(block);
  Cache::List& list = cache.lists[static_cast<size_t>(block->size_class)];
  cache.arena = &arena;
  block->next_cached = list.first;
  list.first = block;
  list.length++;
  const size_t limit = max_blocks(block->size_class);
  if (list.length > limit) cache.drop(list, limit / 2);
}

void flush_small(Arena& arena) {
  if (cache_ended) return;
  cache.arena = &arena;
  for (Cache::List& list : cache.lists) cache.drop(list, 0);
}

}  // namespace troupe
