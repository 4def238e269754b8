// Which operation a member is in or was in last, in memory that other threads and processes read at any time: it can be
// asked of a thread that waits in here for one that never comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::comm {

// Bytes of the memory; src/runtime/inspection/collective-line.ts reads them.
constexpr size_t kStatusSlotBytes = 80;

// Written by one thread at a time.
class StatusSlot {
 public:
  // `memory`: 8-aligned, for as long as this lives. `group`: what the group is called there, cut at 40 bytes.
  StatusSlot(void* memory, const std::string& group);

  // The thread has come to an operation, waits for it, or goes on from it.
  void tell(const char* operation, int64_t sequence, bool waiting);

 private:
  struct Line;

  Line& line_;
  char group_[40] = {};
};

}  // namespace troupe::comm
