// Collectives behind one interface, whatever carries the bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/operation.h"
#include "comm/status_slot.h"

namespace troupe::comm {

// Called now and then by a thread that waits for the other members to join. What it throws ends the wait.
using Look = std::function<void()>;

// How a group ended. Every wait of it, now or later, throws this.
struct Failure {
  const char* code;
  std::string message;
};

// One operation under way. It owns what it needs: its communicator and its tensors' handles may go before it.
class Work {
 public:
  virtual ~Work() = default;

  // Blocks until this rank's part is complete, at most the communicator's deadline, and puts the result where it belongs.
  // Throws CodedError COLLECTIVE_MISMATCH, COLLECTIVE_TIMEOUT or COLLECTIVE_ABORTED.
  void wait();
  // Whether wait() would not block.
  virtual bool done() = 0;
  // Has `call` called once, when done() has become true: at once, or from whatever thread completes it. It must not throw,
  // and holds neither this work nor its communicator. Throws COLLECTIVE_ARGUMENT where a rank's own waits carry its work out.
  virtual void when_done(std::function<void()> call);

 protected:
  // `sequence`: the operation's number in its lane.
  explicit Work(int64_t sequence) : sequence_(sequence) {}
  virtual void block() = 0;

 private:
  friend class Communicator;
  void tell(bool waiting) {
    if (status_slot_) status_slot_->tell(kind_name(kind_), sequence_, waiting);
  }

  const int64_t sequence_;
  Kind kind_ = Kind::barrier;
  std::shared_ptr<StatusSlot> status_slot_;  // of its communicator; null: nothing is reported
  std::chrono::steady_clock::time_point not_before_{};  // of a communicator with an artificial delay
  // Where a result that was computed in contiguous memory belongs.
  at::Tensor strided_;
  at::Tensor contiguous_;
};

using WorkPointer = std::shared_ptr<Work>;  // null: there is nothing to wait for

// One rank's membership in a group. Used by one thread at a time, except for abort, which any thread may call.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  struct Identity {
    std::string backend;
    std::string name;
    int rank;
    int size;
    std::string rendezvous;
    int64_t deadline_ms;
    double delay_ms;  // the least time that each operation takes, one after the other: a slow link, for tests of overlap
    std::shared_ptr<StatusSlot> status_slot;  // null: nothing is reported
    // For NCCL. `checked`: operations are compared before they begin, and threads wait for them. `direct`: NCCL's own reductions are used.
    bool checked = false, direct = false;
  };

  explicit Communicator(Identity identity) : identity_(std::move(identity)) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Identity& identity() const { return identity_; }
  int rank() const { return identity_.rank; }
  int size() const { return identity_.size; }

  // Checks an operation and starts it. Operations run in the order of issue; tensors must be left alone until wait().
  // Meta tensors communicate nothing. Throws COLLECTIVE_ARGUMENT, and what the group has failed with.
  WorkPointer issue(Operation operation) { return begin(std::move(operation), false); }
  // The same, and waits: no detour through another thread.
  void run(Operation operation);

  // Every rank's input, in rank order: first dims may differ. Views of one new tensor. Waits.
  std::vector<at::Tensor> gather_ragged(const at::Tensor& input);

  // Ends the group for all its ranks: every wait, now or later, throws COLLECTIVE_ABORTED with the reason. Any thread.
  void abort(const std::string& reason);
  // Leaves. Ranks that still need this one learn that it is gone. Idempotent.
  virtual void leave() = 0;

 protected:
  friend int64_t abort_group(const std::string& name, const std::string& reason);
  // The two halves of abort: what waits will throw, and the end of the waits.
  virtual void fail(Failure failure) = 0;
  virtual void end_waits() = 0;
  // Carries out a checked operation on contiguous tensors. `waited_for_at_once`: the caller goes on to wait.
  virtual WorkPointer start(Operation operation, bool waited_for_at_once) = 0;
  // Whether it carries device memory; else such tensors are copied to the host and back.
  virtual bool carries_devices() const { return true; }

 private:
  WorkPointer begin(Operation operation, bool waited_for_at_once);
  void delay(Work& work);

  const Identity identity_;
  std::chrono::steady_clock::time_point link_free_{};
};

// Joins a group; the number names the membership in this process until it is closed. Throws COLLECTIVE_ARGUMENT,
// GLOO_UNAVAILABLE, NCCL_UNAVAILABLE, COLLECTIVE_TIMEOUT, and what `look` throws.
int64_t open_communicator(Communicator::Identity identity, const Look& look);
// Throws COLLECTIVE_ARGUMENT on a number that names none. Safe from every thread.
std::shared_ptr<Communicator> communicator(int64_t number);
// Leaves and forgets; false when it was closed before.
bool close_communicator(int64_t number);
// Aborts all memberships in groups of this name; returns how many.
int64_t abort_group(const std::string& name, const std::string& reason);

}  // namespace troupe::comm
