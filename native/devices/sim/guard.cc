// How libtorch and everyone else speak to the device: current device and stream, events, hooks.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <memory>

#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

constexpr c10::DeviceType kSim = c10::DeviceType::PrivateUse1;

// The type that a c10::Event points to.
using Recorded = std::shared_ptr<Marker>;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kSim; }

  c10::Device exchangeDevice(c10::Device device) const override { return {kSim, exchange_device(device.index())}; }
  c10::Device getDevice() const override { return {kSim, current_device()}; }
  void setDevice(c10::Device device) const override { exchange_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { exchange_device(device.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(num_devices()); }

  c10::Stream getStream(c10::Device device) const override { return current_queue(present(device)).stream(); }
  c10::Stream getDefaultStream(c10::Device device) const override { return queue_of(present(device), 0).stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return pooled_queue(present(device)).stream(); }
  c10::Stream getNewStream(c10::Device device, int) const override { return new_queue(present(device)).stream(); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = current_queue(stream.device_index()).stream();
    set_current_queue(queue_of(stream));
    return before;
  }
  bool queryStream(const c10::Stream& stream) const override { return queue_of(stream).is_idle(); }
  void synchronizeStream(const c10::Stream& stream) const override {
    count_host_wait();
    queue_of(stream).synchronize();
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    count_host_wait();
    synchronize_device(device);
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Recorded;
    *static_cast<Recorded*>(*event) = Marker::in(queue_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) Marker::block(*static_cast<Recorded*>(event), queue_of(stream));
  }
  bool queryEvent(void* event) const override { return event == nullptr || (*static_cast<Recorded*>(event))->has_passed(); }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    count_host_wait();
    (*static_cast<Recorded*>(event))->synchronize();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Recorded*>(event); }

  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    record_use(memory, queue_of(stream));
  }

 private:
  static c10::DeviceIndex present(c10::Device device) { return device.has_index() ? device.index() : current_device(); }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(num_devices()); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return exchange_device(device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchange_device(device); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  c10::Device getDeviceFromPtr(void* data) const override {
    const Arena* const arena = arena_of(data);
    return arena == nullptr ? c10::Device(c10::DeviceType::CPU) : c10::Device(kSim, arena->device);
  }
  // The CPU's kernels compute, so theirs are the random numbers.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return at::detail::getDefaultCPUGenerator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override { resize_memory(storage, bytes); }
};

}  // namespace

void register_guard() {
  static const c10::impl::DeviceGuardImplRegistrar registrar(kSim, new Guard);
  c10::SetAllocator(kSim, allocator());
}

void register_hooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

}  // namespace troupe::sim

#endif
