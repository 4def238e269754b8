#include "comm/status_slot.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace troupe::comm {

struct StatusSlot::Line {
  int32_t version;  // odd while it is written
  int32_t waiting;
  double sequence;
  double since_ms;  // of the steady clock, as process.hrtime() counts
  char operation[16];
  char group[40];
};

StatusSlot::StatusSlot(void* memory, const std::string& group) : line_(*static_cast<Line*>(memory)) {
  static_assert(sizeof(Line) == kStatusSlotBytes);
  std::memcpy(group_, group.data(), std::min(group.size(), sizeof(group_)));
}

void StatusSlot::tell(const char* operation, int64_t sequence, bool waiting) {
  const std::chrono::duration<double, std::milli> now = std::chrono::steady_clock::now().time_since_epoch();
  __atomic_fetch_add(&line_.version, 1, __ATOMIC_SEQ_CST);
  line_.waiting = waiting ? 1 : 0;
  line_.sequence = static_cast<double>(sequence);
  line_.since_ms = now.count();
  std::strncpy(line_.operation, operation, sizeof(line_.operation));
  std::memcpy(line_.group, group_, sizeof(group_));
  __atomic_fetch_add(&line_.version, 1, __ATOMIC_SEQ_CST);
}

}  // namespace troupe::comm
