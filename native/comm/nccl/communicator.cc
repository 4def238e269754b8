// The NCCL backend: device memory goes from device to device, in streams of its own, and no thread waits for it; host memory
// goes over Gloo, as barriers do. Sends and receives have a communicator of NCCL for each pair and direction: one stream would
// have them wait for each other.
//
// Nothing is compared beforehand: ranks with different operations wait for each other. An operation that is late is compared over
// Gloo: a rank that has ended, does something else or does not come is named, and NCCL's kernels are ended.
#include "comm/backends.h"
#include "core/error.h"

#if HAVE_GLOO

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "comm/exchange.h"
#include "comm/gloo.h"
#include "comm/nccl/channel.h"
#include "comm/nccl/collective.h"
#include "comm/wire.h"
#include "core/device/device.h"

namespace troupe::comm {
namespace nccl {
namespace {

using Clock = std::chrono::steady_clock;

// The remedy if NCCL cannot connect by the hosts' network.
const std::string kWithoutInfiniBand = "between hosts whose InfiniBand does not work, export NCCL_IB_DISABLE=1 on each";

// After which an operation counts as late.
constexpr auto kPatience = std::chrono::milliseconds(250);
// How long a transfer may still take whose sender has left.
constexpr auto kGrace = std::chrono::seconds(1);
// How often the host looks whether something is over.
constexpr auto kFirstLooks = std::chrono::microseconds(20), kLaterLooks = std::chrono::microseconds(500);
constexpr auto kFirst = std::chrono::milliseconds(2);

// Thrown to abandon an exchange of signals once its operation is over.
struct Needless {};

class SignalsMeanwhile final : public Transport {
 public:
  SignalsMeanwhile(Transport& signals, const std::function<bool()>& over) : signals_(signals), over_(over) {}

  std::vector<Loss> exchange(const std::vector<Message>& sends, const std::vector<Message>& receives, Clock::time_point deadline,
                             const std::function<bool()>&) override {
    std::vector<Loss> losses = signals_.exchange(sends, receives, deadline, over_);
    // A rank that has left may have sent all its data before.
    const auto end = Clock::now() + kGrace;
    while (!losses.empty() && !over_() && Clock::now() < end) std::this_thread::sleep_for(kLaterLooks);
    if (over_()) throw Needless{};
    return losses;
  }
  void interrupt() override {}
  void close() override {}

 private:
  Transport& signals_;
  const std::function<bool()>& over_;
};

class NcclCommunicator final : public ExchangeCommunicator {
 public:
  NcclCommunicator(Identity identity, const std::shared_ptr<Transport>& signals, c10::intrusive_ptr<c10d::Store> store, c10::Device device)
      : ExchangeCommunicator(std::move(identity), signals), store_(std::move(store)), device_(device) {
    const auto deadline = deadline_from_now();
    const Wait wait = [&](const std::function<bool()>& over) { look_until(over, deadline); };
    try {
      all_ = open({"nccl", rank(), size()}, wait);
    } catch (const Ended&) {
      throw CodedError("COLLECTIVE_TIMEOUT", "[openCommunicator " + this->identity().name + "] expected NCCL to connect within " +
                                                 std::to_string(this->identity().deadline_ms) + " ms, got nothing (see the other ranks; " + kWithoutInfiniBand + ")");
    } catch (const CodedError&) {
      throw;
    } catch (const std::exception& error) {
      throw CodedError("NCCL_UNAVAILABLE", "[openCommunicator " + this->identity().name + "] expected NCCL to connect devices of which each "
                                               "has one rank, got " + error.what() + " (" + kWithoutInfiniBand + ")");
    }
  }
  ~NcclCommunicator() override {
    leave();
    end_lanes();  // their tasks use what goes now
  }

  void leave() override {
    const bool in_order = in_flight_ == 0 && !ended_;
    ended_ = true;
    ExchangeCommunicator::leave();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& channel : channels_) in_order ? channel->close() : channel->abort();
  }

 protected:
  bool carries_devices() const override { return true; }

  WorkPointer start(Operation operation, bool waited_for_at_once) override {
    if (operation.device().is_cpu()) return ExchangeCommunicator::start(std::move(operation), waited_for_at_once);
    if (operation.device() != device_) {
      throw CodedError("COLLECTIVE_ARGUMENT", std::string("[") + kind_name(operation.kind) + "] expected a tensor of " + device_.str() +
                                                  ", with which this rank has opened the group, got one of " +
                                                  operation.device().str());
    }
    failure().throw_if_any();
    Lane& lane = lane_of(operation);
    auto flight = std::make_shared<Flight>(*this, lane.ranks, ++lane.issued, std::move(operation).without_graph());
    auto work = std::make_shared<NcclWork>(shared_from_this(), lane.queue, flight);
    in_flight_++;
    if (!flight->is_pair()) issue(*flight);
    flight->failed_at_once = flight->failure != nullptr;
    const auto task = [this, flight, &slot = pairs_[{flight->operation.kind, flight->operation.peer}]] {
      if (flight->is_pair()) issue_pair(*flight, slot);
      watch(*flight);
      in_flight_--;
    };
    work->task = lane.queue.put(task, /*waited_for_at_once=*/flight->is_pair() && waited_for_at_once);
    return work;
  }

 private:
  // An operation under way.
  struct Flight {
    Flight(const NcclCommunicator& member, const std::vector<int>& ranks, int64_t sequence, Operation operation)
        : ranks(ranks),
          sequence(sequence),
          operation(std::move(operation)),
          before(Fence::here(member.device_)),
          deadline(member.deadline_from_now()) {}

    bool is_pair() const { return operation.kind == Kind::send || operation.kind == Kind::recv; }

    const std::vector<int>& ranks;
    const int64_t sequence;
    Operation operation;
    const Fence before;
    const Clock::time_point deadline;
    std::shared_ptr<Channel> channel;
    Fence over;
    std::unique_ptr<Failure> failure;  // written by the queue's thread, unless the operation failed at once
    bool failed_at_once = false;
  };

  class NcclWork final : public Work {
   public:
    NcclWork(std::shared_ptr<Communicator> member, OrderedQueue& queue, std::shared_ptr<Flight> flight)
        : Work(flight->sequence), member_(std::move(member)), queue_(queue), flight_(std::move(flight)) {}

    bool done() override { return queue_.is_finished(*task); }
    void when_done(std::function<void()> call) override { queue_.when_finished(*task, std::move(call)); }

    std::shared_ptr<OrderedQueue::Task> task;

   private:
    // The thread waits for pairs, whose other end may not have come, and where operations are checked; else its stream does.
    void block() override {
      if (flight_->is_pair() || member_->identity().checked) queue_.wait(*task);
      if ((flight_->failed_at_once || queue_.is_finished(*task)) && flight_->failure) {
        throw CodedError(flight_->failure->code, flight_->failure->message, {{"group", member_->identity().name}});
      }
      flight_->over.hold_back();
    }

    const std::shared_ptr<Communicator> member_;  // owns the queue
    OrderedQueue& queue_;
    const std::shared_ptr<Flight> flight_;
  };

  Clock::time_point deadline_from_now() const { return Clock::now() + std::chrono::milliseconds(identity().deadline_ms); }

  std::shared_ptr<Channel> open(const Channel::Place& place, const Wait& wait) {
    auto channel = std::make_shared<Channel>(place, *store_, device_, wait);
    const std::lock_guard<std::mutex> lock(mutex_);
    channels_.push_back(channel);
    if (ended_) channel->abort();
    return channel;
  }

  void issue(Flight& flight) {
    attempt(flight, [&](const Wait& wait) {
      flight.channel = all_;
      flight.over = all_->issue(flight.before, wait, [&](Channel& channel) {
        issue_collective(identity(), flight.operation, channel);
      });
    });
  }

  void issue_pair(Flight& flight, std::shared_ptr<Channel>& channel) {
    attempt(flight, [&](const Wait& wait) {
      const Operation& operation = flight.operation;
      const bool sends = operation.kind == Kind::send;
      if (!channel) {
        const std::string ends = std::to_string(flight.ranks[0]) + "-" + std::to_string(flight.ranks[1]);
        channel = open({"nccl/" + ends, sends ? 0 : 1, 2}, wait);
      }
      flight.channel = channel;
      flight.over = channel->issue(flight.before, wait, [&](Channel& pair) {
        use_in_stream(sends ? operation.input : operation.output);
        pair.together([&](Comm comm, void* stream) {
          sends ? send(operation.input, 1, comm, stream) : recv(operation.output, 0, comm, stream);
        });
      });
    });
  }

  // Returns when the operation is over, or has failed.
  void watch(Flight& flight) {
    if (!flight.failure) {
      attempt(flight, [&](const Wait& wait) {
        wait([&] {
          flight.channel->check_health();
          return flight.over.has_passed();
        });
      });
    }
    flight.operation.input = flight.operation.output = at::Tensor();
  }

  // Runs a part of an operation; an exception becomes its failure, and the group's.
  template <class Part>
  void attempt(Flight& flight, const Part& part) {
    const Wait wait = [&](const std::function<bool()>& over) { wait_in(flight, over); };
    try {
      failure().throw_if_any();
      if (identity().checked && !flight.channel) compare(flight, signals());
      part(wait);
    } catch (const CodedError& error) {
      fail_in(flight, failure().keep({error.code, error.what()}));
    } catch (const Ended&) {
      fail_in(flight, failure().keep({"COLLECTIVE_TIMEOUT", "[collective " + identity().name + "] " + describe(flight) + " to be over within " +
                                                              std::to_string(identity().deadline_ms) + " ms was expected: all have come, and it is not"}));
    } catch (const std::exception& error) {
      fail_in(flight, failure().keep({"COLLECTIVE_ABORTED", "[collective " + identity().name + "] " + describe(flight) + " to go well was expected: " +
                                                              error.what()}));
    }
  }

  void fail_in(Flight& flight, const Failure& failure) {
    flight.failure.reset(new Failure(failure));
    ended_ = true;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& channel : channels_) channel->abort();
  }

  // Once an operation is late the ranks compare what they do. Throws Ended, and what Wire throws.
  void wait_in(const Flight& flight, const std::function<bool()>& over) {
    if (look(over, std::min(flight.deadline, Clock::now() + kPatience))) return;
    try {
      SignalsMeanwhile meanwhile(signals(), over);
      compare(flight, meanwhile);
    } catch (const Needless&) {
      return;
    }
    look_until(over, flight.deadline);
  }

  void compare(const Flight& flight, Transport& by) {
    const RoundSetting setting{identity(), by, failure()};
    Wire(setting, flight.ranks, flight.sequence, flight.operation, flight.deadline).compare();
  }

  void look_until(const std::function<bool()>& over, Clock::time_point deadline) {
    if (!look(over, deadline)) throw Ended{};
  }

  // Whether it was over before the time had come. Throws Ended where the group is.
  bool look(const std::function<bool()>& over, Clock::time_point until) {
    const auto begin = Clock::now();
    while (!over()) {
      if (ended_) throw Ended{};
      const auto now = Clock::now();
      if (now >= until) return false;
      std::this_thread::sleep_for(now - begin < kFirst ? kFirstLooks : kLaterLooks);
    }
    return true;
  }

  std::string describe(const Flight& flight) const {
    return comm::describe(signature_of(flight.operation, flight.sequence, rank(), rank()));
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const c10::Device device_;
  std::atomic<bool> ended_{false};
  std::atomic<int> in_flight_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::shared_ptr<Channel> all_;
  std::map<std::pair<Kind, int>, std::shared_ptr<Channel>> pairs_;
};

}  // namespace
}  // namespace nccl

std::shared_ptr<Communicator> make_nccl(Communicator::Identity identity, const Look& look) {
  const c10::Device device = compute_device().is_cpu() ? default_device() : compute_device();
  if (device.is_cpu()) {
    throw CodedError("NCCL_UNAVAILABLE", "[nccl] a thread that computes on a device of its own was expected: this one computes on the host");
  }
  nccl::library();
  const StorePointer store = open_group_store(identity);
  const std::shared_ptr<Transport> signals = connect_gloo(identity, store, look);
  return std::make_shared<nccl::NcclCommunicator>(std::move(identity), signals, store, device);
}

}  // namespace troupe::comm

#else

namespace troupe::comm {

std::shared_ptr<Communicator> make_nccl(Communicator::Identity, const Look&) {
  throw CodedError("NCCL_UNAVAILABLE", "[nccl] expected an addon built with Gloo, over which ranks find each other, got one built "
                                       "without its headers (apt install libgloo-dev, npm run build:native)");
}

}  // namespace troupe::comm

#endif
