#include "devices/sim/schedule.h"

#include <atomic>
#include <cstdlib>

namespace troupe::sim {
namespace {

constexpr uint64_t kStretch = 48;  // tasks that are eager, or lazy, together

uint64_t seed_of_environment() {
  const char* text = std::getenv("TROUPE_SIM_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

std::atomic<uint64_t>& seed() {
  static std::atomic<uint64_t> value{seed_of_environment()};
  return value;
}

// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t present_seed() { return seed().load(std::memory_order_relaxed); }

void set_present_seed(uint64_t value) { seed().store(value, std::memory_order_relaxed); }

uint64_t Schedule::choice(uint64_t place, uint64_t question) const {
  return mixed(mixed(mixed(present_seed() + 0x9E3779B97F4A7C15u * stream_) + place) + question);
}

bool Schedule::is_eager(uint64_t place) const { return choice(place / kStretch, 1) % 4 == 0; }

bool Schedule::frees_soon(uint64_t place) const { return choice(place / kStretch, 5) % 2 == 0; }

size_t Schedule::max_lag(uint64_t place) const { return 64 + choice(place / kStretch, 2) % 512; }

int Schedule::pause_us(uint64_t place) const { return choice(place, 3) % 16 == 0 ? static_cast<int>(choice(place, 4) % 200) : 0; }

}  // namespace troupe::sim
