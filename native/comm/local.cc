// The local backend: threads of one process, through their common memory.

#include <sched.h>

#include <algorithm>
#include <map>

#include "comm/backends.h"
#include "comm/local_group.h"
#include "core/error.h"

namespace troupe::comm {
namespace {

using Clock = LocalGroup::Clock;

// A thread that sleeps needs tens of microseconds to wake; a small operation is over in one.
constexpr auto kLongestSpin = std::chrono::microseconds(40);
// After a spin in vain, so many waits at most sleep at once: others need the processor, perhaps the rank that is awaited.
constexpr int kMostSleeps = 64;
constexpr int kPausesPerLook = 16;

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int num_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// How one rank waits: it spins while spinning helps, and never where the ranks outnumber the processors.
class Patience {
 public:
  explicit Patience(int group_size) : may_spin_(num_processors() >= group_size) {}

  template <class Over>
  bool spin(Clock::time_point begin, const Over& over) {
    if (!may_spin_) return over();
    if (num_sleeps_left_ > 0) {
      num_sleeps_left_--;
      return over();
    }
    do {
      for (int i = 0; i < kPausesPerLook; i++) {
        if (over()) {
          num_sleeps_ = 0;
          return true;
        }
        pause_processor();
      }
    } while (Clock::now() - begin < kLongestSpin);
    num_sleeps_ = std::min(kMostSleeps, 2 * num_sleeps_ + 1);
    num_sleeps_left_ = num_sleeps_;
    return false;
  }

 private:
  const bool may_spin_;
  int num_sleeps_ = 0;
  int num_sleeps_left_ = 0;
};

class LocalWork final : public Work {
 public:
  LocalWork(std::shared_ptr<LocalGroup> group, std::shared_ptr<Patience> patience, Lane& lane, std::shared_ptr<LocalCollective> collective,
            int64_t deadline_ms)
      : Work(collective->sequence),
        group_(std::move(group)),
        patience_(std::move(patience)),
        lane_(lane),
        collective_(std::move(collective)),
        deadline_ms_(deadline_ms) {}

  bool done() override { return is_finished() || group_->has_failed(); }

 private:
  bool is_finished() const { return collective_->finished.load(std::memory_order_acquire); }

  void block() override {
    if (!is_finished()) wait_for_it();
    // A finished result stays valid when the group fails later.
    if (!is_finished()) group_->throw_failure();
    collective_->hold_back();
  }

  void wait_for_it() {
    const Clock::time_point begin = Clock::now();
    const bool over = patience_->spin(begin, [this] { return done() || collective_->has_unclaimed(); });
    if (!over || !done()) group_->await(lane_, *collective_, begin + std::chrono::milliseconds(deadline_ms_), deadline_ms_);
  }

  const std::shared_ptr<LocalGroup> group_;
  const std::shared_ptr<Patience> patience_;
  Lane& lane_;
  const std::shared_ptr<LocalCollective> collective_;
  const int64_t deadline_ms_;
};

struct Groups {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<LocalGroup>> by_name;
};

Groups& groups() {
  static Groups* const instance = new Groups;
  return *instance;
}

std::shared_ptr<LocalGroup> join_group(const Communicator::Identity& identity) {
  const std::lock_guard<std::mutex> lock(groups().mutex);
  std::shared_ptr<LocalGroup>& group = groups().by_name[identity.name];
  if (!group) group = std::make_shared<LocalGroup>(identity.name, identity.size);
  if (group->size() != identity.size) {
    throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator] expected the size that " + identity.name + " has (" +
                                                std::to_string(group->size()) + "), got " + std::to_string(identity.size));
  }
  group->join(identity.rank);
  return group;
}

class LocalCommunicator final : public Communicator {
 public:
  explicit LocalCommunicator(Identity identity)
      : Communicator(std::move(identity)), group_(join_group(this->identity())), patience_(std::make_shared<Patience>(size())) {}
  ~LocalCommunicator() override { leave(); }

  void leave() override {
    if (left_) return;
    left_ = true;
    const std::lock_guard<std::mutex> lock(groups().mutex);
    if (group_->leave(rank())) groups().by_name.erase(identity().name);
  }

 protected:
  void fail(Failure failure) override { group_->fail(std::move(failure)); }
  void end_waits() override {}  // the group's failure has
  WorkPointer start(Operation operation, bool) override {
    Lane& lane = group_->lane_of(operation, rank());
    std::shared_ptr<LocalCollective> collective = group_->post(lane, rank(), std::move(operation));
    return std::make_shared<LocalWork>(group_, patience_, lane, std::move(collective), identity().deadline_ms);
  }

 private:
  const std::shared_ptr<LocalGroup> group_;
  const std::shared_ptr<Patience> patience_;
  bool left_ = false;
};

}  // namespace

std::shared_ptr<Communicator> make_local(Communicator::Identity identity) {
  return std::make_shared<LocalCommunicator>(std::move(identity));
}

}  // namespace troupe::comm
