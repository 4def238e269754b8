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
// Has the store that `options` opens listen at `host` alone, where that is loopback or this process's own address (`set_host_address`).
// A name that other hosts resolve to another address stays as it was: the store listens at all. Throws std::runtime_error where the
// address or its port cannot be had.
void listen_at(const std::string& host, c10d::TCPStoreOptions& options);
#endif

}  // namespace troupe::comm
