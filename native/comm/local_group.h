// A group of threads of one process: matches their operations and carries them out.
//
// An operation is posted when it is issued. The last thread to post does a small operation at once for all. A large one is shared by
// the threads that wait for it, or done by the group's helper thread while all of them compute. So an operation makes progress
// even if no thread waits for it, and waiting threads work instead of idling.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/communicator.h"
#include "comm/local_collective.h"

namespace troupe::comm {

// The operations among the same ranks, in order: the collectives of all, or what one rank sends to another.
struct Lane {
  std::vector<int> ranks;
  std::deque<std::shared_ptr<LocalCollective>> collectives;  // not finished yet; the first may be runnable
  std::vector<int64_t> issued;                    // by participant
  int64_t num_finished = 0;
  int num_waiting = 0;  // ready to help

  bool has_work() const { return !collectives.empty() && collectives.front()->has_unclaimed(); }
};

class LocalGroup {
 public:
  using Clock = std::chrono::steady_clock;

  LocalGroup(std::string name, int size);
  ~LocalGroup();

  int size() const { return size_; }

  // Throws COLLECTIVE_ARGUMENT when the rank was there before.
  void join(int rank);
  // True for the last to leave.
  bool leave(int rank);

  void fail(Failure failure);
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  [[noreturn]] void throw_failure();

  Lane& lane_of(const Operation& operation, int rank);
  std::shared_ptr<LocalCollective> post(Lane& lane, int rank, Operation operation);
  // Sleeps until the collective is finished or the group has failed, helping with what is runnable in the lane; at the
  // deadline, fails the group.
  void await(Lane& lane, const LocalCollective& collective, Clock::time_point deadline, int64_t deadline_ms);

 private:
  enum class Member { absent, present, left };

  // All of these need the lock; help_first releases it while it helps.
  void fail_locked(Failure failure);
  void fail_for_the_left(const Lane& lane, const LocalCollective& collective);
  void fail_for_the_late(const Lane& lane, const LocalCollective& collective, int64_t deadline_ms);
  // Makes the first collective of the lane runnable once all members posted it, and has a thread run it.
  void start_if_ready(Lane& lane, std::unique_lock<std::mutex>& lock);
  void hand_over(Lane& lane);
  // True when this thread did the last of it.
  bool help_first(Lane& lane, std::unique_lock<std::mutex>& lock);
  Lane* lane_with_work();
  void help_until_stopped();

  const std::string name_;
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  Lane collectives_;
  std::map<std::pair<int, int>, Lane> pairs_;
  std::atomic<bool> failed_{false};
  Failure failure_;

  std::thread helper_;
  std::condition_variable helper_wanted_;
  bool stopping_ = false;
};

}  // namespace troupe::comm
