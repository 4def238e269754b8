// The pretend device: libtorch's PrivateUse1 under the name "sim". Its memory cannot be reached by the CPU, its operators run
// late on queues of its own, and what is read too early or too late is poison, so that a missing copy, wait or record is seen
// on a machine without a GPU. It computes with the CPU's kernels, to the CPU's bits.
//
// TROUPE_SIM_DEVICES: how many there are, 2 where it is not set. TROUPE_SIM_SEED: which of the legal schedules is run.
#pragma once

#include <cstdint>

namespace troupe::sim {

// Registers the device with libtorch. Until then it costs nothing: no memory, no thread, no kernel. Thread-safe; twice is
// once. Throws CodedError TENSOR_OP_MISSING where libtorch is older than 2.9.
void open();

// Counts since the process began, over all devices.
struct Statistics {
  int64_t late_operators = 0;  // put into a queue
  int64_t read_backs = 0;      // the host waited for a value, or for a copy to itself
  int64_t host_waits = 0;      // the host waited for a stream, an event or a copy from itself
};

Statistics statistics();

// The seed of every queue's schedule from now on.
void set_seed(uint64_t seed);

}  // namespace troupe::sim
