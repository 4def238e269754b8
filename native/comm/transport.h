// The interface that moves bytes of host memory between two ranks that share no memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace troupe::comm {

// Contiguous memory on its way to or from a rank. Between two ranks, a tag names one message in each direction.
struct Message {
  int peer;
  int tag;
  at::Tensor memory;
};

// A message that did not come or could not be sent.
struct Loss {
  int peer;
  std::string reason;  // empty: the deadline passed, or the transport was interrupted
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Sends and receives all of these at once; returns when all are there, or when no more can be hoped for: what was lost.
  // Any thread, several at a time with different tags. Ends as at the deadline once `needless`, if given, is true; it is asked
  // often, by another thread.
  virtual std::vector<Loss> exchange(const std::vector<Message>& sends, const std::vector<Message>& receives,
                                     std::chrono::steady_clock::time_point deadline,
                                     const std::function<bool()>& needless = {}) = 0;
  // Ends every exchange, now and later. Any thread.
  virtual void interrupt() = 0;
  // Closes the connections once no exchange uses them any more: the other ranks notice. Idempotent.
  virtual void close() = 0;
};

}  // namespace troupe::comm
