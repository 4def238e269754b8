#include "core/device/device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/device/graph.h"
#include "core/error.h"

namespace troupe {
namespace {

struct KnownKind {
  DeviceKind kind;
  std::once_flag prepared;

  explicit KnownKind(DeviceKind known) : kind(known) {}
};

// Never freed: threads may end after the library's own statics.
std::vector<KnownKind*>& kinds() {
  static auto* const known = new std::vector<KnownKind*>{new KnownKind({"cpu", c10::DeviceType::CPU, nullptr, nullptr}),
                                                         new KnownKind({"cuda", c10::DeviceType::CUDA, nullptr, nullptr})};
  return *known;
}

KnownKind* find_kind(const std::string& name) {
  for (KnownKind* known : kinds()) {
    if (name == known->kind.name) return known;
  }
  return nullptr;
}

const KnownKind* find_kind(c10::DeviceType type) {
  const auto found = std::find_if(kinds().begin(), kinds().end(), [&](const KnownKind* known) { return known->kind.type == type; });
  return found == kinds().end() ? nullptr : *found;
}

int64_t count_of(KnownKind& known) {
  if (known.kind.prepare != nullptr) std::call_once(known.prepared, known.kind.prepare);
  if (known.kind.type == c10::DeviceType::CPU) return 1;
  if (!c10::impl::hasDeviceGuardImpl(known.kind.type)) return 0;
  return c10::impl::getDeviceGuardImpl(known.kind.type)->deviceCount();
}

[[noreturn]] void refuse_device(const std::string& name, const std::string& got) {
  std::string names;
  for (const KnownKind* known : kinds()) names += (names.empty() ? "" : ", ") + std::string(known->kind.name);
  throw CodedError("DEVICE_UNAVAILABLE", "[device " + name + "] expected a device of this process, got " + got +
                                             " (kinds: " + names + "; npx troupe doctor tells what the addon was built for)");
}

// The number behind the colon; 0 where there is none, -1 where it is no number.
int64_t index_in(const std::string& name, size_t colon) {
  if (colon == std::string::npos) return 0;
  const std::string digits = name.substr(colon + 1);
  const bool sound = !digits.empty() && digits.size() <= 3 && std::all_of(digits.begin(), digits.end(), [](char digit) {
                       return digit >= '0' && digit <= '9';
                     });
  return sound ? std::stoll(digits) : -1;
}

thread_local c10::Device entered{c10::DeviceType::CPU};
thread_local c10::Device heard_of{c10::DeviceType::CPU};
thread_local c10::Device thread_device{c10::DeviceType::CPU};
std::atomic<int64_t> num_read_backs{0};

}  // namespace

RegisteredDeviceKind::RegisteredDeviceKind(DeviceKind kind) {
  if (KnownKind* const known = find_kind(kind.name)) {
    known->kind = kind;
  } else {
    kinds().push_back(new KnownKind(kind));
  }
}

c10::Device device_named(const std::string& name) {
  const size_t colon = name.find(':');
  KnownKind* const known = find_kind(name.substr(0, colon));
  const int64_t index = index_in(name, colon);
  if (known == nullptr || index < 0) refuse_device(name, "no name of one");
  const int64_t count = count_of(*known);
  if (index >= count) refuse_device(name, std::to_string(count) + " of this kind");
  if (known->kind.type == c10::DeviceType::CPU) return c10::Device(c10::DeviceType::CPU);
  return {known->kind.type, static_cast<c10::DeviceIndex>(index)};
}

bool has_device_kind(const std::string& kind) {
  const KnownKind* const known = find_kind(kind);
  return known != nullptr && (known->kind.prepare != nullptr || known->kind.type == c10::DeviceType::CPU);
}

int64_t device_count(const std::string& kind) {
  KnownKind* const known = find_kind(kind);
  return known == nullptr ? 0 : count_of(*known);
}

c10::Device default_device() { return thread_device; }

c10::Device set_default_device(c10::Device device) {
  const c10::Device before = thread_device;
  thread_device = device;
  return before;
}

c10::Device compute_device() { return entered; }

c10::Device ordering_device() { return entered.is_cpu() ? heard_of : entered; }

void hear_of_device(c10::Device device) {
  if (heard_of.is_cpu()) heard_of = device;
}

void enter_device(c10::Device device) {
  set_default_device(device);
  entered = device;
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.setDevice(device);
  guard.exchangeStream(guard.getStreamFromGlobalPool(device));
}

void* native_stream(const c10::Stream& stream) {
  const KnownKind* const known = find_kind(stream.device_type());
  if (known != nullptr && known->kind.native_stream != nullptr) return known->kind.native_stream(stream);
  refuse_device(c10::DeviceTypeName(stream.device_type(), /*lower_case=*/true), "one without streams");
}

bool captures_graphs(c10::Device device) {
  const KnownKind* const known = find_kind(device.type());
  return known != nullptr && known->kind.capture != nullptr;
}

std::unique_ptr<DeviceGraph> capture_graph(c10::Device device, const DeviceGraph* beside, const std::function<void()>& body) {
  if (!captures_graphs(device)) refuse_device(device.str(), "one whose work cannot be captured");
  return find_kind(device.type())->kind.capture(device.index(), beside, body);
}

std::optional<DeviceMemory> device_memory(const std::string& kind, int64_t index) {
  const KnownKind* const known = find_kind(kind);
  if (known == nullptr || known->kind.memory == nullptr) return std::nullopt;
  return known->kind.memory(index);
}

void release_cached_device_memory() {
  for (const KnownKind* known : kinds()) {
    if (known->kind.release_cached_memory != nullptr) known->kind.release_cached_memory();
  }
}

int64_t read_backs() { return num_read_backs.load(std::memory_order_relaxed); }

void count_read_back() { num_read_backs.fetch_add(1, std::memory_order_relaxed); }

}  // namespace troupe
