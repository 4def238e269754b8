#include "devices/sim/device.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "core/memory/allocator.h"
#include "core/torch_version.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

constexpr c10::StreamId kPooled = 32;

struct Device {
  explicit Device(c10::DeviceIndex index) : arena(index) {}

  Arena arena;
  std::mutex mutex;
  std::map<c10::StreamId, Queue*> queues;
  c10::StreamId next_pooled = 0;
  c10::StreamId next_own = kPooled + 1;
};

// Never destroyed: queues run until the process ends.
std::deque<Device>& devices() {
  static auto* const all = new std::deque<Device>;
  return *all;
}

Device& device_at(c10::DeviceIndex index) {
  const auto place = static_cast<size_t>(index);
  TORCH_CHECK(index >= 0 && place < devices().size(), "[sim] expected a device of sim:0 to sim:", devices().size() - 1,
              ", got sim:", static_cast<int>(index), " (TROUPE_SIM_DEVICES says how many there are)");
  return devices()[place];
}

thread_local c10::DeviceIndex thread_device = 0;
thread_local std::map<c10::DeviceIndex, Queue*> thread_queues;

void free_block(void* context) {
  auto* const block = static_cast<Block*>(context);
  block->arena->give(block);
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = current_device();
    const c10::Device device(c10::DeviceType::PrivateUse1, index);
    if (bytes == 0) return {nullptr, device};
    Arena& arena = arena_of(index);
    Block* const block = arena.take(bytes, current_queue(index));
    return {arena.address(block), block, &free_block, device};
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "[sim] expected a copy of tensors, got one of bare device memory");
  }
};

// Ordinary memory that is known to be pinned.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> ranges;
};

Pinned& pinned() {
  static auto* const all = new Pinned;
  return *all;
}

struct PinnedBlock {
  c10::DataPtr memory;
};

void free_pinned(void* context) {
  auto* const block = static_cast<PinnedBlock*>(context);
  {
    const std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().ranges.erase(static_cast<const char*>(block->memory.get()));
  }
  delete block;
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr memory = c10::GetCPUAllocator()->allocate(bytes);
    void* const data = memory.get();
    if (data == nullptr) return memory;
    const std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().ranges.emplace(static_cast<const char*>(data), bytes);
    return {data, new PinnedBlock{std::move(memory)}, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

void make_devices(int count) {
  for (int index = 0; index < count; index++) devices().emplace_back(static_cast<c10::DeviceIndex>(index));
}

int num_devices() { return static_cast<int>(devices().size()); }

Arena& arena_of(c10::DeviceIndex device) { return device_at(device).arena; }

Arena* arena_of(const void* address) {
  for (Device& device : devices()) {
    if (device.arena.holds(address)) return &device.arena;
  }
  return nullptr;
}

Queue& queue_of(c10::DeviceIndex index, c10::StreamId id) {
  Device& device = device_at(index);
  const std::lock_guard<std::mutex> lock(device.mutex);
  Queue*& queue = device.queues[id];
  if (queue == nullptr) queue = new Queue(index, id);
  return *queue;
}

Queue& pooled_queue(c10::DeviceIndex index) {
  Device& device = device_at(index);
  c10::StreamId id = 0;
  {
    const std::lock_guard<std::mutex> lock(device.mutex);
    id = 1 + device.next_pooled++ % kPooled;
  }
  return queue_of(index, id);
}

Queue& new_queue(c10::DeviceIndex index) {
  Device& device = device_at(index);
  c10::StreamId id = 0;
  {
    const std::lock_guard<std::mutex> lock(device.mutex);
    id = device.next_own++;
  }
  return queue_of(index, id);
}

std::vector<Queue*> queues_of(c10::DeviceIndex index) {
  Device& device = device_at(index);
  const std::lock_guard<std::mutex> lock(device.mutex);
  std::vector<Queue*> all;
  for (const auto& [id, queue] : device.queues) all.push_back(queue);
  return all;
}

void synchronize_device(c10::DeviceIndex device) {
  const std::vector<Queue*> queues = queues_of(device);
  for (Queue* queue : queues) queue->wait(queue->last_place());
  for (Queue* queue : queues) queue->raise();
}

void stop_queues() {
  for (Device& device : devices()) {
    for (Queue* queue : queues_of(device.arena.device)) queue->stop();
  }
}

c10::DeviceIndex current_device() { return thread_device; }

c10::DeviceIndex exchange_device(c10::DeviceIndex device) {
  const c10::DeviceIndex before = thread_device;
  if (device >= 0) thread_device = device_at(device).arena.device;
  return before;
}

Queue& current_queue(c10::DeviceIndex device) {
  Queue*& queue = thread_queues[device];
  if (queue == nullptr) queue = &queue_of(device, 0);
  return *queue;
}

void set_current_queue(Queue& queue) { thread_queues[queue.device] = &queue; }

c10::Allocator* allocator() {
  static auto* const instance = new Allocator;
  return instance;
}

void record_use(const c10::DataPtr& memory, Queue& queue) {
  if (memory.get_deleter() != &free_block) return;
  auto* const block = static_cast<Block*>(memory.get_context());
  if (block != nullptr) block->arena->record(block, queue);
}

void resize_memory(const c10::Storage& storage, size_t bytes) {
  const c10::DeviceGuard guard(storage.device());
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  c10::DataPtr memory = allocator()->allocate(bytes);
  const size_t kept = std::min(bytes, impl->nbytes());
  if (kept > 0) {
    Arena& arena = arena_of(storage.device().index());
    void* const to = arena.reachable(memory.get());
    const void* const from = arena.reachable(storage.data());
    current_queue(storage.device().index()).push("resize", [=] { std::memcpy(to, from, kept); });
  }
  const c10::DataPtr old = impl->set_data_ptr(std::move(memory));
  impl->set_nbytes(bytes);
}

c10::Allocator* pinned_allocator() {
  static auto* const instance = new PinnedAllocator;
  return instance;
}

bool is_pinned(const void* address) {
  const auto* const at = static_cast<const char*>(address);
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  auto above = pinned().ranges.upper_bound(at);
  if (above == pinned().ranges.begin()) return false;
  const auto& [begin, bytes] = *std::prev(above);
  return at < begin + bytes;
}

}  // namespace troupe::sim

#endif
