// The pretend devices, their streams, and where each thread stands among them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <vector>

#include "devices/sim/arena.h"
#include "devices/sim/queue.h"

namespace troupe::sim {

// Makes them; to be called once, before anything below.
void make_devices(int count);
int num_devices();

Arena& arena_of(c10::DeviceIndex device);
// The arena that an address lies in; null for memory of the host.
Arena* arena_of(const void* address);

// The stream of that number; made by its first use. 0 is the default stream.
Queue& queue_of(c10::DeviceIndex device, c10::StreamId id);
inline Queue& queue_of(const c10::Stream& stream) { return queue_of(stream.device_index(), stream.id()); }
// A new stream: one of 32 by turns, as CUDA's pool has them, or one of its own.
Queue& pooled_queue(c10::DeviceIndex device);
Queue& new_queue(c10::DeviceIndex device);
std::vector<Queue*> queues_of(c10::DeviceIndex device);

// Waits for every stream of a device; throws what failed.
void synchronize_device(c10::DeviceIndex device);

// The calling thread's device and queues.
c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex device);
Queue& current_queue(c10::DeviceIndex device);
void set_current_queue(Queue& queue);

// Memory for tensors, taken for the calling thread's stream of its device.
c10::Allocator* allocator();
// Says that work in `queue` uses the memory.
void record_use(const c10::DataPtr& memory, Queue& queue);
// Other memory for a storage, with what the old one held.
void resize_memory(const c10::Storage& storage, size_t bytes);
// Memory of the host that copies may use late.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);

// Has every queue end after the task it runs: the process is about to.
void stop_queues();

// Registers guard and hooks with libtorch.
void register_guard();
void register_hooks();

// Counts that Statistics tells.
void count_late_operator();
void count_read_back();
void count_host_wait();

}  // namespace troupe::sim
