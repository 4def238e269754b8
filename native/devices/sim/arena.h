// Memory that the CPU cannot reach by the tensors' addresses: one file in memory, mapped twice. Tensors name the first
// mapping, to which every access faults; the device's queues use the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "devices/sim/queue.h"

namespace troupe::sim {

// The bookkeeping of one block of device memory.
struct Block {
  class Arena* arena;
  size_t begin, size, asked_bytes;
  Queue* owner;              // the stream it was allocated on
  std::vector<Queue*> uses;  // others that it was recorded on
  void* charge;              // of the ledger
};

// The memory of one device, given out and taken back as CUDA's caching allocator does. Thread-safe, never destroyed.
class Arena {
 public:
  explicit Arena(c10::DeviceIndex device);

  // Poisoned memory for work in the stream `owner`. Throws c10::OutOfMemoryError.
  Block* take(size_t bytes, Queue& owner);
  // At once free for later work in the block's own stream, for others never; where it was recorded on other streams, only
  // when they have come past this place. What was in it is poisoned in the same order.
  void give(Block* block);
  // Gives all of them, poisoned, what is free for one stream, of which nothing is under way.
  void give_up(Queue& owner);
  // Says that work in `queue` uses the block.
  void record(Block* block, Queue& queue);

  // The address that tensors name, and the one that the queues use.
  void* address(const Block* block) const { return guarded_ + block->begin; }
  void* reachable(const void* address) const { return reached_ + (static_cast<const char*>(address) - guarded_); }
  bool holds(const void* address) const { return address >= guarded_ && address < guarded_ + capacity_; }

  const c10::DeviceIndex device;

 private:
  using Ranges = std::map<size_t, size_t>;  // begin to size

  bool take_from(Ranges& ranges, size_t size, size_t& begin);
  bool grow(size_t size, size_t& begin);
  void free_range(Queue* owner, size_t begin, size_t size);
  void give_back(Block* block);
  void merge_all();

  const size_t capacity_;
  char* guarded_;
  char* reached_;
  std::mutex mutex_;
  size_t end_ = 0;
  std::map<Queue*, Ranges> free_;  // by the stream that may use it; null: any
};

}  // namespace troupe::sim
