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

class ExchangeCommunicator final : public Communicator {
 public:
  // `signals` carries host memory; `payload` carries the tensors, and may be the same.
  ExchangeCommunicator(Identity identity, std::shared_ptr<Transport> signals, std::shared_ptr<Transport> payload);
  ~ExchangeCommunicator() override;

  void leave() override;

 protected:
  void fail(Failure failure) override { failure_.keep(std::move(failure)); }
  void end_waits() override { leave(); }
  WorkPointer start(Operation operation, bool waited_for_at_once) override;
  bool carries_devices() const override { return payload_ != signals_; }

 private:
  // The operations between the same ranks, in order: the collectives of all, what goes to a rank, what comes from one.
  struct Lane {
    std::vector<int> ranks;
    int64_t issued = 0;
    OrderedQueue queue;
  };
  class ExchangeWork;

  Lane& lane_of(const Operation& operation);

  const std::shared_ptr<Transport> signals_;
  const std::shared_ptr<Transport> payload_;
  FirstFailure failure_;
  std::map<std::pair<Kind, int>, Lane> lanes_;
};

}  // namespace troupe::comm
