// One communicator of NCCL and the stream that its transfers run in. What is given to it runs behind what the caller names, and
// nobody waits for it: a fence says where it ends.
#pragma once

#if HAVE_GLOO

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <mutex>
#include <string>

#include "comm/nccl/library.h"
#include "comm/rendezvous.h"
#include "core/device/fence.h"

namespace troupe::comm::nccl {

// Returns once `over` is true; throws where it no longer need be waited for.
using Wait = std::function<void(const std::function<bool()>& over)>;

// Thrown where a channel was ended.
struct Ended {};

// One thread at a time gives it something, whichever; abort may come from any.
class Channel {
 public:
  struct Place {
    std::string key;  // of its id in the store
    int rank;
    int size;
  };

  // Joins; returns once all members have. Throws what `wait` throws, and what NCCL says.
  Channel(const Place& place, c10d::Store& store, c10::Device device, const Wait& wait);
  ~Channel() { abort(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Puts what `calls` does into the channel's stream, behind `before`: calls of NCCL, each within `together`, and operators of
  // libtorch. Returns where it ends.
  Fence issue(const Fence& before, const Wait& wait, const std::function<void(Channel&)>& calls);

  // Within `issue`: calls of NCCL that need each other. Returns once they stand in the stream. Throws Ended, what `wait` throws,
  // and what NCCL says.
  void together(const std::function<void(Comm, void* stream)>& calls);

  // Throws what NCCL has found wrong since.
  void check_health() { state(); }
  // Ends what is under way; nothing goes through it any more. Idempotent, any thread.
  void abort();
  // The same in order, where nothing is under way: the others take what was sent last.
  void close();

 private:
  Result state();

  const Library& library_;
  const c10::Device device_;
  const c10::Stream stream_;
  void* const native_stream_;
  const Wait* wait_ = nullptr;
  std::mutex mutex_;  // NCCL takes one call at a time for a communicator
  Comm comm_ = nullptr;
};

}  // namespace troupe::comm::nccl

#endif
