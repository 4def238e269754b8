// A store of c10d by itself: where the hosts of a run find each other before any of them is in a group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::comm {

// Opens the TCPStore at host:port, at a free port where that is 0, or joins the one that listens there; its number. See `listen_at` for the
// addresses at which it listens. Throws STORE_UNREACHABLE, GLOO_UNAVAILABLE.
int64_t open_store(const std::string& host, int port, bool listens, int64_t timeout_ms);

void set_in_store(int64_t store, const std::string& key, const std::string& value);

// Nothing where nobody has set it yet: never waits.
std::optional<std::string> read_from_store(int64_t store, const std::string& key);

// Adds to a number that begins at 0; what it is then.
int64_t add_in_store(int64_t store, const std::string& key, int64_t amount);

// The port that it listens at.
int store_port(int64_t store);

// The store that this process has opened is gone for all.
void close_store(int64_t store);

// Sets the address at which other hosts reach this process. Groups with a store on the network listen there from now on.
void set_host_address(const std::string& address);

// Empty until `set_host_address`.
std::string host_address();

}  // namespace troupe::comm
