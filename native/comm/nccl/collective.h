// The collectives as NCCL's calls. Gathers are NCCL's own. Reductions are libtorch's operators in rank order on the tensors that
// NCCL has brought, so that the bits are those of the other backends. NCCL's own reductions, an option, are quicker and add in
// NCCL's order.
#pragma once

#include "comm/communicator.h"
#include "comm/nccl/channel.h"

#if HAVE_GLOO

namespace troupe::comm::nccl {

// Gives a channel a collective, within `Channel::issue`. Throws what `Channel::together` throws.
void issue_collective(const Communicator::Identity& identity, const Operation& operation, Channel& channel);

// Send and take a tensor's bytes, within `Channel::together`.
void send(const at::Tensor& memory, int peer, Comm comm, void* stream);
void recv(const at::Tensor& memory, int peer, Comm comm, void* stream);

}  // namespace troupe::comm::nccl

#endif
