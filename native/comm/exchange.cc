#include "comm/exchange.h"

#include <numeric>

#include "core/error.h"

namespace troupe::comm {

class ExchangeCommunicator::ExchangeWork final : public Work {
 public:
  ExchangeWork(std::shared_ptr<Communicator> member, OrderedQueue& queue, int64_t sequence)
      : Work(sequence), member_(std::move(member)), queue_(queue) {}

  bool done() override { return queue_.is_finished(*task); }
  void when_done(std::function<void()> call) override { queue_.when_finished(*task, std::move(call)); }

  std::shared_ptr<OrderedQueue::Task> task;
  const std::shared_ptr<std::unique_ptr<Failure>> failure = std::make_shared<std::unique_ptr<Failure>>();

 private:
  void block() override {
    queue_.wait(*task);
    if (*failure) throw CodedError((*failure)->code, (*failure)->message, {{"group", member_->identity().name}});
  }

  const std::shared_ptr<Communicator> member_;  // owns the queue
  OrderedQueue& queue_;
};

ExchangeCommunicator::ExchangeCommunicator(Identity identity, std::shared_ptr<Transport> transport)
    : Communicator(std::move(identity)), transport_(std::move(transport)) {}

ExchangeCommunicator::~ExchangeCommunicator() { leave(); }

WorkPointer ExchangeCommunicator::start(Operation operation, bool waited_for_at_once) {
  failure_.throw_if_any();
  Lane& lane = lane_of(operation);
  const int64_t sequence = ++lane.issued;
  auto work = std::make_shared<ExchangeWork>(shared_from_this(), lane.queue, sequence);
  const auto task = [this, &lane, sequence, operation = std::move(operation).without_graph(), failure = work->failure] {
    try {
      run_round({identity(), *transport_, failure_}, lane.ranks, sequence, operation);
    } catch (const CodedError& error) {
      failure->reset(new Failure{error.code, error.what()});
    } catch (const std::exception& error) {
      failure->reset(new Failure(failure_.keep({"NATIVE_FAILED", std::string("[collective] ") + error.what()})));
    }
  };
  work->task = lane.queue.put(task, waited_for_at_once);
  return work;
}

ExchangeCommunicator::Lane& ExchangeCommunicator::lane_of(const Operation& operation) {
  const bool pair = operation.kind == Kind::send || operation.kind == Kind::recv;
  Lane& lane = pair ? lanes_[{operation.kind, operation.peer}] : lanes_[{Kind::barrier, 0}];
  if (!lane.ranks.empty()) return lane;
  if (pair) {
    lane.ranks = {operation.kind == Kind::send ? rank() : operation.peer, operation.kind == Kind::send ? operation.peer : rank()};
  } else {
    lane.ranks.resize(static_cast<size_t>(size()));
    std::iota(lane.ranks.begin(), lane.ranks.end(), 0);
  }
  return lane;
}

void ExchangeCommunicator::leave() {
  failure_.keep({"COLLECTIVE_ABORTED", "[collective " + identity().name + "] expected this rank to stay: it has left the group"});
  transport_->interrupt();
  transport_->close();
}

}  // namespace troupe::comm
