// Where members of a group that may live in different processes find each other: a store of c10d.
#pragma once

#if HAVE_GLOO

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>

#include "comm/communicator.h"

namespace troupe::comm {

// Whether a rendezvous binds the members to this host: none, a file, or a loopback address.
bool is_on_this_host(const std::string& rendezvous);

// The group's store, once all members are there. Throws COLLECTIVE_ARGUMENT when they contradict each other, and
// COLLECTIVE_TIMEOUT naming those that did not come within the deadline.
c10::intrusive_ptr<c10d::Store> meet(const Communicator::Identity& identity);

// Blocks until all members of the store have come to the place that `place` names. Throws COLLECTIVE_TIMEOUT naming those
// that did not within the deadline.
void wait_for_all(const Communicator::Identity& identity, c10d::Store& store, const std::string& place);

}  // namespace troupe::comm

#endif
