#include "comm/nccl/channel.h"

#if HAVE_GLOO

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/device/device.h"

namespace troupe::comm::nccl {
namespace {

using Clock = std::chrono::steady_clock;

// How long a member that leaves in order may take for it.
constexpr auto kFarewell = std::chrono::seconds(2);

UniqueId shared_id(const Channel::Place& place, c10d::Store& store, const Library& library, const Wait& wait) {
  UniqueId id;
  if (place.rank == 0) {
    check(library.get_unique_id(&id), "ncclGetUniqueId");
    const auto* bytes = reinterpret_cast<const uint8_t*>(id.bytes);
    store.set(place.key, std::vector<uint8_t>(bytes, bytes + sizeof(id.bytes)));
    return id;
  }
  wait([&] { return store.check({place.key}); });
  const std::vector<uint8_t> bytes = store.get(place.key);
  std::memcpy(id.bytes, bytes.data(), std::min(bytes.size(), sizeof(id.bytes)));
  return id;
}

}  // namespace

Channel::Channel(const Place& place, c10d::Store& store, c10::Device device, const Wait& wait)
    : library_(library()),
      device_(device),
      stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/true)),
      native_stream_(native_stream(stream_)) {
  const UniqueId id = shared_id(place, store, library_, wait);
  const c10::DeviceGuard on_device(device_);
  Config config;
  check(library_.comm_init_rank_config(&comm_, place.size, id, place.rank, &config), "ncclCommInitRankConfig");
  try {
    wait([this] { return state() == success; });
  } catch (...) {
    abort();
    throw;
  }
}

Fence Channel::issue(const Fence& before, const Wait& wait, const std::function<void(Channel&)>& calls) {
  const c10::StreamGuard in_stream(stream_);
  wait_ = &wait;
  before.hold_back(device_);
  calls(*this);
  return Fence::here(device_);
}

void Channel::together(const std::function<void(Comm, void*)>& calls) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (comm_ == nullptr) throw Ended{};
    check(library_.group_start(), "ncclGroupStart");
    try {
      calls(comm_, native_stream_);
    } catch (...) {
      library_.group_end();  // else the thread's next operations would be part of this group
      throw;
    }
    check(library_.group_end(), "ncclGroupEnd");
  }
  // What NCCL still connects stands in no stream yet: an event behind it would pass too early.
  (*wait_)([this] { return state() == success; });
}

Result Channel::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) throw Ended{};
  Result state = success;
  check(library_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
  check(state, "NCCL");
  return state;
}

void Channel::abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ != nullptr) library_.comm_abort(comm_);
  comm_ = nullptr;
}

void Channel::close() {
  try {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (comm_ == nullptr) return;
      check(library_.comm_finalize(comm_), "ncclCommFinalize");
    }
    const auto deadline = Clock::now() + kFarewell;
    while (state() != success && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (state() != success) return abort();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (comm_ != nullptr) library_.comm_destroy(comm_);
    comm_ = nullptr;
  } catch (...) {
    abort();
  }
}

}  // namespace troupe::comm::nccl

#endif
