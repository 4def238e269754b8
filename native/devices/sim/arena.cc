#include "devices/sim/arena.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/memory/allocator.h"
#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

constexpr size_t kAlignment = 512;  // as CUDA's
// NaN in every floating format, and -1 as a number.
constexpr int kPoison = 0xFF;

size_t machine_bytes() {
  struct sysinfo info;
  sysinfo(&info);
  return info.totalram * static_cast<size_t>(info.mem_unit) / kAlignment * kAlignment;
}

char* mapped(int file, size_t bytes, int protection) {
  void* const begin = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  TORCH_CHECK(begin != MAP_FAILED, "[sim] expected addresses for ", bytes, " bytes of device memory, got \"",
              std::strerror(errno), "\"");
  return static_cast<char*>(begin);
}

void poison(void* begin, size_t bytes) { std::memset(begin, kPoison, bytes); }

// Adds a range, joined with its neighbours.
void insert(std::map<size_t, size_t>& ranges, size_t begin, size_t size) {
  auto above = ranges.lower_bound(begin);
  if (above != ranges.end() && begin + size == above->first) {
    size += above->second;
    above = ranges.erase(above);
  }
  if (above != ranges.begin()) {
    const auto below = std::prev(above);
    if (below->first + below->second == begin) {
      below->second += size;
      return;
    }
  }
  ranges.emplace(begin, size);
}

}  // namespace

Arena::Arena(c10::DeviceIndex device) : device(device), capacity_(machine_bytes()) {
  const int file = memfd_create("troupe-sim", MFD_CLOEXEC);
  TORCH_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(capacity_)) == 0, "[sim] expected a file in memory for a device, got \"",
              std::strerror(errno), "\"");
  guarded_ = mapped(file, capacity_, PROT_NONE);
  reached_ = mapped(file, capacity_, PROT_READ | PROT_WRITE);
  close(file);
}

Block* Arena::take(size_t bytes, Queue& owner) {
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  size_t begin = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  bool found = take_from(free_[&owner], size, begin) || take_from(free_[nullptr], size, begin) || grow(size, begin);
  if (!found) {
    lock.unlock();
    synchronize_device(device);
    lock.lock();
    merge_all();
    found = take_from(free_[nullptr], size, begin) || grow(size, begin);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, found, "[sim] expected memory for ", bytes, " bytes on sim:", static_cast<int>(device),
                   ", got ", end_, " of ", capacity_, " held (use a smaller batch, more ranks or recomputation)");
  if (owner.is_kept()) owner.add_memory(reached_ + begin, size);
  return new Block{this, begin, size, bytes, &owner, {}, charge_memory(static_cast<int64_t>(bytes), present_tag())};
}

void Arena::give(Block* block) {
  credit_memory(block->charge, static_cast<int64_t>(block->asked_bytes));
  if (block->uses.empty()) {
    // The range is free before it is poisoned: who takes it for the same stream works behind the poison.
    void* const begin = reached_ + block->begin;
    block->owner->push_free([begin, bytes = block->size] { poison(begin, bytes); });
    free_range(block->owner, block->begin, block->size);
    delete block;
    return;
  }
  block->uses.push_back(block->owner);
  const auto left = std::make_shared<std::atomic<size_t>>(block->uses.size());
  const std::vector<Queue*> uses = block->uses;  // the last one deletes the block
  for (Queue* queue : uses) {
    queue->push_free([this, block, left] {
      if (left->fetch_sub(1) == 1) give_back(block);
    });
  }
}

void Arena::give_up(Queue& owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [begin, size] : free_[&owner]) {
    poison(reached_ + begin, size);
    insert(free_[nullptr], begin, size);
  }
  free_.erase(&owner);
}

void Arena::record(Block* block, Queue& queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (&queue == block->owner || std::find(block->uses.begin(), block->uses.end(), &queue) != block->uses.end()) return;
  block->uses.push_back(&queue);
}

bool Arena::take_from(Ranges& ranges, size_t size, size_t& begin) {
  auto best = ranges.end();
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    if (it->second >= size && (best == ranges.end() || it->second < best->second)) best = it;
  }
  if (best == ranges.end()) return false;
  begin = best->first;
  const size_t rest = best->second - size;
  ranges.erase(best);
  if (rest > 0) ranges.emplace(begin + size, rest);
  return true;
}

// Memory after the end was never used, so it may be poisoned from here.
bool Arena::grow(size_t size, size_t& begin) {
  if (size > capacity_ - end_) return false;
  begin = end_;
  end_ += size;
  poison(reached_ + begin, size);
  return true;
}

void Arena::free_range(Queue* owner, size_t begin, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  insert(free_[owner], begin, size);
}

void Arena::give_back(Block* block) {
  poison(reached_ + block->begin, block->size);
  free_range(block->owner, block->begin, block->size);
  delete block;
}

// To be called when every stream has come to its end.
void Arena::merge_all() {
  Ranges all;
  for (auto& [owner, ranges] : free_) {
    for (const auto& [begin, size] : ranges) insert(all, begin, size);
    ranges.clear();
  }
  free_[nullptr] = std::move(all);
}

}  // namespace troupe::sim

#endif
