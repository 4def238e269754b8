// Gloo, libtorch's CPU transport between processes. Whether it is there is decided when the addon is built (HAVE_GLOO).
#pragma once

#if HAVE_GLOO
#include "comm/rendezvous.h"
#include "comm/transport.h"
#endif

namespace troupe::comm {

// Whether this addon was built with Gloo.
bool gloo_built();

#if HAVE_GLOO
// Joins all others at the store and connects this rank to each. Throws the errors of the rendezvous, and COLLECTIVE_ABORTED when one of them
// leaves meanwhile.
std::shared_ptr<Transport> connect_gloo(const Communicator::Identity& identity, const StorePointer& store, const Look& look);
#endif

// Sums a tensor over a group of one rank through Gloo on the loopback device: loads all of the transport, opens and
// closes its threads. Throws what Gloo throws, or CodedError when the sum is wrong. Needs gloo_built().
void check_gloo();

}  // namespace troupe::comm
