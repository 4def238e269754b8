// Calls that are made when a time has come, unless they are cancelled: how waits that cannot look at a clock themselves end.
#pragma once

#include <chrono>
#include <functional>

namespace troupe::comm {

// While it lives, `ring` will be called once at `deadline`, from a thread of the process's own. The destructor waits for a
// call that is under way; `ring` must not throw.
class Alarm {
 public:
  Alarm(std::chrono::steady_clock::time_point deadline, std::function<void()> ring);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  const std::chrono::steady_clock::time_point deadline_;
};

}  // namespace troupe::comm
