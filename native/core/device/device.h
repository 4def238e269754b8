// Where a thread computes: the host, or a device such as a GPU.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <string>

namespace troupe {

// A kind of device that the addon brings: what must be done before the first of them is used.
struct DeviceKind {
  const char* name;
  c10::DeviceType type;
  void (*prepare)();  // once
  void* (*native_stream)(const c10::Stream&);
};

// Makes a kind known by its name. From static initializers of native/devices; "cpu" and "cuda" are known already.
struct RegisteredDeviceKind {
  explicit RegisteredDeviceKind(DeviceKind kind);
};

// "cpu", "cuda:1"; "cuda" is "cuda:0". Throws CodedError DEVICE_UNAVAILABLE where this process has no such device.
c10::Device device_named(const std::string& name);

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

// Times that values of a device were waited for and read, by this process.
int64_t read_backs();
void count_read_back();

}  // namespace troupe
