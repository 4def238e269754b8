// The messages of one operation between this rank and others: signatures first, then bytes.
#pragma once

#include <chrono>
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

// Where an operation runs.
struct RoundSetting {
  const Communicator::Identity& identity;
  Transport& transport;
  FirstFailure& failure;
};

// The contiguous tensors that a rank sends to a peer and receives from it; undefined: nothing.
struct Trade {
  int peer;
  at::Tensor outgoing;
  at::Tensor incoming;
};

// Whether memory is so small that it travels in the message of the signature.
bool rides_along(const at::Tensor& memory);

// Throws COLLECTIVE_MISMATCH, COLLECTIVE_TIMEOUT and COLLECTIVE_ABORTED, which the group then has failed with.
class Wire {
 public:
  Wire(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation);
  Wire(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation,
       std::chrono::steady_clock::time_point deadline);

  // Signatures alone, with all other ranks of it.
  void compare();
  // The first step of every operation, with all other ranks of it, in rank order: signatures, then these bytes.
  void trade(const std::vector<Trade>& all);
  // A second step, without signatures.
  void trade_results(const std::vector<Trade>& all);

 private:
  enum Step : int;

  int rank() const { return setting_.identity.rank; }
  bool is_pair() const { return operation_.kind == Kind::send || operation_.kind == Kind::recv; }
  Step envelope_step(bool from_sender) const;
  int tag_of(Step step) const;
  void exchange_envelopes(const std::vector<Trade>& all);
  void fill(const at::Tensor& envelope, const Trade& with) const;
  void check_signatures(const std::vector<Trade>& all, const at::Tensor& envelopes);
  void move(const std::vector<Trade>& all, Step step);
  void carry(Transport& transport, const std::vector<Message>& sends, const std::vector<Message>& receives);
  [[noreturn]] void throw_late(const std::vector<Loss>& losses);
  [[noreturn]] void throw_failure(Failure failure);

  const RoundSetting& setting_;
  const std::vector<int>& ranks_;
  const int64_t sequence_;
  const Operation& operation_;
  const std::chrono::steady_clock::time_point deadline_;
};

}  // namespace troupe::comm
