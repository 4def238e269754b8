#include "core/memory/arena.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t kGrowBytes = size_t{32} << 20;
constexpr size_t kSlackBytes = size_t{64} << 20;
// Addresses are plenty and memory is not: free pages between blocks in use are given back but keep their addresses.
constexpr size_t kAddressesPerByte = 4;

size_t block_bytes(size_t data_bytes) {
  return sizeof(Block) + (data_bytes + sizeof(Block) - 1) / sizeof(Block) * sizeof(Block);
}

}  // namespace

Arena::Arena(size_t limit_bytes) : space_(kAddressesPerByte * limit_bytes), limit_bytes_(limit_bytes) {}

Block* Arena::take(size_t data_bytes) {
  if (data_bytes > limit_bytes_) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  return take_locked(block_bytes(data_bytes));
}

Block* Arena::take_many(size_t data_bytes, size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  Block* chain = nullptr;
  for (; count > 0; count--) {
    Block* block = take_locked(block_bytes(data_bytes));
    if (!block) break;
    block->next_cached = chain;
    chain = block;
  }
  return chain;
}

void Arena::give(Block* block) {
  std::lock_guard<std::mutex> lock(mutex_);
  give_locked(block);
}

void Arena::give_chain(Block* chain) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (chain) {
    Block* next = chain->next_cached;
    give_locked(chain);
    chain = next;
  }
}

void Arena::purge() {
  std::lock_guard<std::mutex> lock(mutex_);
  trim(0);
}

size_t Arena::resident_bytes() {
  std::lock_guard<std::mutex> lock(mutex_);
  return space_.resident_bytes();
}

Block* Arena::take_locked(size_t bytes) {
  if (used_bytes_ + bytes > limit_bytes_) return nullptr;
  auto fit = free_.lower_bound({bytes, nullptr});
  Block* block = fit == free_.end() ? grow(bytes) : fit->second;
  if (!block) return nullptr;
  free_.erase({block->bytes, block});
  block->free = false;
  split(block, bytes);
  used_bytes_ += block->bytes;
  peak_used_bytes_ = std::max(peak_used_bytes_, used_bytes_);
  // The header above was written as well.
  char* last = std::min(reinterpret_cast<char*>(block->above() + 1), space_.end());
  if (space_.touch(reinterpret_cast<char*>(block), last) > 0) {
    trim(peak_used_bytes_ + std::max(kSlackBytes, peak_used_bytes_ / 8));
  }
  return block;
}

void Arena::give_locked(Block* block) {
  used_bytes_ -= block->bytes;
  if (block != topmost_ && block->above()->free) {
    Block* above = block->above();
    free_.erase({above->bytes, above});
    block->bytes += above->bytes;
    if (topmost_ == above) topmost_ = block;
  }
  if (block->below && block->below->free) {
    Block* below = block->below;
    free_.erase({below->bytes, below});
    below->bytes += block->bytes;
    if (topmost_ == block) topmost_ = below;
    block = below;
  }
  if (block != topmost_) block->above()->below = block;
  insert_free(block);
}

// A free block of at least `bytes` at the top, joined with the free one that may lie there.
Block* Arena::grow(size_t bytes) {
  const bool joins = topmost_ && topmost_->free;
  const size_t missing = bytes - (joins ? topmost_->bytes : 0);
  char* old_end = space_.end();
  if (!space_.grow(std::max(missing, kGrowBytes)) && !space_.grow(missing)) return nullptr;
  const size_t grown = static_cast<size_t>(space_.end() - old_end);
  if (joins) {
    free_.erase({topmost_->bytes, topmost_});
    topmost_->bytes += grown;
  } else {
    Block* block = reinterpret_cast<Block*>(old_end);
    block->bytes = grown;
    block->below = topmost_;
    topmost_ = block;
  }
  insert_free(topmost_);
  return topmost_;
}

// Cuts what is beyond `bytes` off as a free block, unless that is less than 1/64: many slivers would cost more.
void Arena::split(Block* block, size_t bytes) {
  const size_t rest_bytes = block->bytes - bytes;
  if (rest_bytes < std::max(2 * sizeof(Block), bytes / 64)) return;
  block->bytes = bytes;
  Block* rest = block->above();
  rest->bytes = rest_bytes;
  rest->below = block;
  if (topmost_ == block) {
    topmost_ = rest;
  } else {
    rest->above()->below = rest;
  }
  insert_free(rest);
}

// Largest blocks first: they hold the most complete pages, and are the least likely to be the next best fit.
void Arena::trim(size_t resident_limit_bytes) {
  for (auto it = free_.rbegin(); it != free_.rend() && space_.resident_bytes() > resident_limit_bytes; ++it) {
    char* first = reinterpret_cast<char*>(it->second + 1);
    space_.purge(first, reinterpret_cast<char*>(it->second) + it->first);
  }
}

void Arena::insert_free(Block* block) {
  block->free = true;
  free_.insert({block->bytes, block});
}

}  // namespace troupe
