#include "core/programs/chain_runner.h"

#include <array>
#include <atomic>

namespace troupe {
namespace {

using FindRunner = RunChain (*)(const c10::Device&);

std::atomic<FindRunner>& finder_of(c10::DeviceType kind) {
  static std::array<std::atomic<FindRunner>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> all{};
  return all[static_cast<size_t>(kind)];
}

}  // namespace

RunChain chain_runner(const c10::Device& device) {
  const FindRunner find = finder_of(device.type());
  return find == nullptr ? nullptr : find(device);
}

void set_chain_runner(c10::DeviceType kind, RunChain (*find)(const c10::Device&)) { finder_of(kind) = find; }

}  // namespace troupe
