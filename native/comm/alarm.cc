#include "comm/alarm.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;

// One thread for all alarms of the process. It never ends: it may outlive the threads that set alarms.
class Bell {
 public:
  static Bell& get() {
    static Bell* const bell = new Bell;
    return *bell;
  }

  void set(const Alarm* alarm, Clock::time_point deadline, std::function<void()> ring) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto place = alarms_.emplace(std::make_pair(deadline, alarm), std::move(ring)).first;
    if (place == alarms_.begin()) changed_.notify_all();
  }

  void cancel(const Alarm* alarm, Clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    alarms_.erase({deadline, alarm});
    changed_.wait(lock, [&] { return ringing_ != alarm; });
  }

 private:
  Bell() {
    std::thread([this] { watch(); }).detach();
  }

  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (alarms_.empty()) {
        changed_.wait(lock);
      } else if (const auto next = alarms_.begin(); Clock::now() < next->first.first) {
        const Clock::time_point deadline = next->first.first;  // `cancel` may erase it meanwhile
        changed_.wait_until(lock, deadline);
      } else {
        ring(next, lock);
      }
    }
  }

  using Alarms = std::map<std::pair<Clock::time_point, const Alarm*>, std::function<void()>>;

  void ring(Alarms::iterator next, std::unique_lock<std::mutex>& lock) {
    ringing_ = next->first.second;
    const std::function<void()> call = std::move(next->second);
    alarms_.erase(next);
    lock.unlock();
    call();
    lock.lock();
    ringing_ = nullptr;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Alarms alarms_;
  const Alarm* ringing_ = nullptr;
};

}  // namespace

Alarm::Alarm(Clock::time_point deadline, std::function<void()> ring) : deadline_(deadline) {
  Bell::get().set(this, deadline, std::move(ring));
}

Alarm::~Alarm() { Bell::get().cancel(this, deadline_); }

}  // namespace troupe::comm
