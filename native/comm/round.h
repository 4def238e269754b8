// One operation carried out by one rank, by messages: what ExchangeCommunicator's lanes run one after the other.
#pragma once

#include <memory>
#include <mutex>

#include "comm/communicator.h"
#include "comm/transport.h"

namespace troupe::comm {

// How a group failed: the first who says so is right. Safe from every thread.
class FirstFailure {
 public:
  // The first failure, this one or an earlier.
  Failure keep(Failure failure);
  void throw_if_any();

 private:
  std::mutex mutex_;
  std::unique_ptr<Failure> failure_;
};

// Where a round runs.
struct RoundSetting {
  const Communicator::Identity& identity;
  Transport& signals;
  Transport& payload;
  FirstFailure& failure;
};

// Exchanges signatures among `ranks` and moves the bytes of `operation`, this rank's part of number `sequence`. Throws
// COLLECTIVE_MISMATCH, COLLECTIVE_TIMEOUT and COLLECTIVE_ABORTED, which the group then has failed with.
void run_round(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation);

}  // namespace troupe::comm
