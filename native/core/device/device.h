// Where a thread computes: the host, or a device such as a GPU.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

struct DeviceMemory {
  int64_t free_bytes, total_bytes;  // of the device, as its driver reports: other processes' too
  int64_t held_bytes;               // by the caching allocator, in use or cached
  int64_t live_bytes;               // of these in use: rounded up to the allocator's blocks
};

class DeviceGraph;

// A kind of device that the addon brings. Null: it has nothing of the sort.
struct DeviceKind {
  const char* name;
  c10::DeviceType type;
  void (*prepare)();  // once, before the first of them is used
  void* (*native_stream)(const c10::Stream&);
  DeviceMemory (*memory)(int64_t index) = nullptr;
  void (*release_cached_memory)() = nullptr;  // nothing happens before the first use of a device
  // See `capture_graph` (core/device/graph.h).
  std::unique_ptr<DeviceGraph> (*capture)(int64_t index, const DeviceGraph* beside, const std::function<void()>& body) = nullptr;
};

// Makes a kind known by its name. From static initializers of native/devices; "cpu" and "cuda" are known already, the latter as a
// kind that the addon was built without.
struct RegisteredDeviceKind {
  explicit RegisteredDeviceKind(DeviceKind kind);
};

// "cpu", "cuda:1"; "cuda" is "cuda:0". Throws CodedError DEVICE_UNAVAILABLE where this process has no such device.
c10::Device device_named(const std::string& name);

// Whether the addon was built for a kind of device.
bool has_device_kind(const std::string& kind);

// How many devices of a kind this process may use; 0 for a kind that it does not know.
int64_t device_count(const std::string& kind);

// Where new tensors of the calling thread are made unless something else is said: the host at first.
c10::Device default_device();
// Returns what it was before.
c10::Device set_default_device(c10::Device device);

// The device that the calling thread computes on, set by `enter_device`.
c10::Device compute_device();

// The device whose stream has the places that go with the calling thread's messages: the device it computes on. For a thread of the
// host, the first device of `hear_of_device`, and the host before that.
c10::Device ordering_device();
// Names a device to the calling thread, which is a thread of the host.
void hear_of_device(c10::Device device);

// From now on the calling thread makes its tensors on a device and computes there, in a stream of its own.
void enter_device(c10::Device device);

// What C interfaces of a device's kind know a stream by: a cudaStream_t. Throws CodedError DEVICE_UNAVAILABLE for the host's.
void* native_stream(const c10::Stream& stream);

// None where the addon cannot tell, because it was built without the kind.
std::optional<DeviceMemory> device_memory(const std::string& kind, int64_t index);
// Gives cached memory that no tensor uses back to the devices.
void release_cached_device_memory();

// Times that values of a device were waited for and read, by this process.
int64_t read_backs();
void count_read_back();

}  // namespace troupe
