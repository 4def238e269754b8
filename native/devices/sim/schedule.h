// When a queue's next task may run: as a seed says, between at once and as late as anyone waits for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::sim {

// The seed of every schedule: TROUPE_SIM_SEED, else 1.
uint64_t present_seed();
void set_present_seed(uint64_t seed);

// How one queue behaves at each place: a pure function of the seed, the queue and the place. For a stretch of
// tasks it is eager, or it is lazy: then a task runs only when the host or another queue waits for it, the latest that is
// legal, by which a reader that does not wait is early for certain.
class Schedule {
 public:
  Schedule(int device, int64_t stream) : stream_(static_cast<uint64_t>(device) << 32 | static_cast<uint64_t>(stream)) {}

  bool is_eager(uint64_t place) const;
  // Whether memory that is freed here is poisoned soon, even where the queue is lazy: what lies behind it stays as late as
  // it was, but nobody finds the old values instead of those to come.
  bool frees_soon(uint64_t place) const;
  // A lazy queue longer than this runs on all the same.
  size_t max_lag(uint64_t place) const;
  // Before a task of an eager stretch.
  int pause_us(uint64_t place) const;

 private:
  uint64_t choice(uint64_t place, uint64_t question) const;

  const uint64_t stream_;
};

}  // namespace troupe::sim
