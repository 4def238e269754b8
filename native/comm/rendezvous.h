// Where members of a group that may live in different processes find each other: a store of c10d.
#pragma once

#if HAVE_GLOO

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace troupe::comm {

// Whether a rendezvous binds the members to this host: none, a file, or a loopback address.
bool is_on_this_host(const std::string& rendezvous);

using StorePointer = c10::intrusive_ptr<c10d::Store>;
using Bytes = std::vector<uint8_t>;

// This member's end of the group's store. Throws COLLECTIVE_TIMEOUT where nobody keeps it within the deadline.
StorePointer open_group_store(const Communicator::Identity& identity);

// Blocks until all members are there: what each has brought, by rank. No two of them bring the same. Throws COLLECTIVE_ARGUMENT
// when members contradict each other, COLLECTIVE_TIMEOUT naming those that did not come within the deadline, and what `look` throws.
std::vector<Bytes> meet(const Communicator::Identity& identity, c10d::Store& store, const Bytes& brought, const Look& look);

// Blocks until all members of the store have come to the place that `place` names. Throws COLLECTIVE_TIMEOUT naming those
// that did not within the deadline, and what `look` throws.
void wait_for_all(const Communicator::Identity& identity, c10d::Store& store, const std::string& place, const Look& look);

}  // namespace troupe::comm

#endif
