// Collectives made of messages, for every transport. Before the bytes, the ranks exchange their signatures, so that a
// mistake is an error on all of them and no hang. What is small rides with the signature: one round trip. Larger ones
// move the bytes a ring would, (N-1)/N of the tensor in and out of each rank, in one round for a gather or a reduce-scatter
// and in two for an all-reduce: slices to their owners, reduced there in rank order, and back.
#pragma once

#include <map>
#include <memory>

#include "comm/communicator.h"
#include "comm/ordered_queue.h"
#include "comm/round.h"
#include "comm/transport.h"

namespace troupe::comm {

class ExchangeCommunicator : public Communicator {
 public:
  ExchangeCommunicator(Identity identity, std::shared_ptr<Transport> transport);
  ~ExchangeCommunicator() override;

  void leave() override;

 protected:
  void fail(Failure failure) override { failure_.keep(std::move(failure)); }
  void end_waits() override { leave(); }
  WorkPointer start(Operation operation, bool waited_for_at_once) override;
  bool carries_devices() const override { return false; }

  // The operations between the same ranks, in order: the collectives of all, the sends to a rank, the receives from one.
  struct Lane {
    std::vector<int> ranks;
    int64_t issued = 0;
    OrderedQueue queue;
  };

  Lane& lane_of(const Operation& operation);
  // Returns once no task runs any more. Called by the destructors of classes that queue tasks.
  void end_lanes() { lanes_.clear(); }
  Transport& signals() { return *transport_; }
  FirstFailure& failure() { return failure_; }

 private:
  class ExchangeWork;

  const std::shared_ptr<Transport> transport_;
  FirstFailure failure_;
  std::map<std::pair<Kind, int>, Lane> lanes_;
};

}  // namespace troupe::comm
