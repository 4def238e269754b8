// Where a store of c10d listens. By itself a TCPStore listens at all addresses of the machine.
#pragma once

#include <string>

#if HAVE_GLOO
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace troupe::comm {

// Whether a host's name or address means this machine and cannot be reached from another.
bool is_loopback(const std::string& host);

#if HAVE_GLOO
// Makes the store that `options` opens listen at `host` alone, if that is loopback or this process's own address (`set_host_address`).
// For any other name, which other hosts may resolve to another address, the store listens at all addresses. Throws std::runtime_error if
// the address or its port cannot be bound.
void listen_at(const std::string& host, c10d::TCPStoreOptions& options);
#endif

}  // namespace troupe::comm
