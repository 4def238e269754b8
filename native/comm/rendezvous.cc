#include "comm/rendezvous.h"

#if HAVE_GLOO

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "comm/listening.h"
#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe::comm {
namespace {

using Milliseconds = std::chrono::milliseconds;

struct Stores {
  struct Entry {
    StorePointer store;
    int num_members = 0;
  };
  std::mutex mutex;
  std::map<std::string, Entry> by_name;
};

Stores& stores() {
  static Stores* const instance = new Stores;
  return *instance;
}

// In one process: the same store for all members, forgotten when the last has it.
StorePointer store_in_process(const Communicator::Identity& identity) {
  const std::lock_guard<std::mutex> lock(stores().mutex);
  Stores::Entry& entry = stores().by_name[identity.name];
  if (!entry.store) {
    entry.store = c10::make_intrusive<c10d::HashStore>();
    entry.store->setTimeout(Milliseconds(identity.deadline_ms));
  }
  const StorePointer store = entry.store;
  if (++entry.num_members == identity.size) stores().by_name.erase(identity.name);
  return store;
}

// The colon of `host:port`, npos in a path.
size_t colon_of(const std::string& rendezvous) {
  const size_t colon = rendezvous.rfind(':');
  const bool numeric = colon != std::string::npos && colon + 1 < rendezvous.size() &&
                       rendezvous.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return numeric && rendezvous.find('/') == std::string::npos ? colon : std::string::npos;
}

// Prefix of the address of a store that a process outside the group keeps: no member listens.
constexpr const char kKept[] = "store:";

bool is_kept(const std::string& rendezvous) { return rendezvous.rfind(kKept, 0) == 0; }

// Connects to a store that another process keeps. A thread that joins one group after the other reuses the previous group's connection
// while that exists: a store looks up the host name of each new connection, which takes longer than all requests. Threads never share
// one, because a thread that waits in a store holds its lock.
StorePointer connection_to(const std::string& host, const c10d::TCPStoreOptions& options) {
  using Weak = c10::weak_intrusive_ptr<c10d::Store>;
  static thread_local std::optional<std::pair<std::string, Weak>> last;
  const std::string address = host + ":" + std::to_string(options.port);
  StorePointer store = last && last->first == address ? last->second.lock() : StorePointer();
  if (store) {
    store->setTimeout(options.timeout);
    return store;
  }
  store = c10::make_intrusive<c10d::TCPStore>(host, options);
  last.emplace(address, Weak(store));
  return store;
}

StorePointer store_at(const Communicator::Identity& identity) {
  if (identity.rendezvous.empty()) return store_in_process(identity);
  const bool kept = is_kept(identity.rendezvous);
  const std::string rendezvous = kept ? identity.rendezvous.substr(sizeof kKept - 1) : identity.rendezvous;
  const size_t colon = colon_of(rendezvous);
  if (colon == std::string::npos) {
    const StorePointer file = c10::make_intrusive<c10d::FileStore>(rendezvous, identity.size);
    file->setTimeout(Milliseconds(identity.deadline_ms));
    return file;
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(std::stoi(rendezvous.substr(colon + 1)));
  options.isServer = !kept && identity.rank == 0;
  options.waitWorkers = false;
  options.timeout = Milliseconds(identity.deadline_ms);
  options.multiTenant = true;
  const std::string host = rendezvous.substr(0, colon);
  if (kept) return connection_to(host, options);
  if (options.isServer) listen_at(host, options);
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Many values as one, each behind its length.
Bytes joined(const std::vector<Bytes>& values) {
  Bytes whole;
  for (const Bytes& value : values) {
    const auto size = static_cast<uint32_t>(value.size());
    const auto* const begin = reinterpret_cast<const uint8_t*>(&size);
    whole.insert(whole.end(), begin, begin + sizeof size);
    whole.insert(whole.end(), value.begin(), value.end());
  }
  return whole;
}

std::vector<Bytes> parted(const Bytes& whole) {
  std::vector<Bytes> values;
  for (auto at = whole.begin(); at != whole.end();) {
    uint32_t size;
    std::memcpy(&size, &*at, sizeof size);
    at += sizeof size;
    values.emplace_back(at, at + size);
    at += size;
  }
  return values;
}

[[noreturn]] void refuse(const Communicator::Identity& identity, const std::string& expected, const std::string& got) {
  throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator " + identity.name + "] expected " + expected + ", got " + got);
}

std::string key_of(const std::string& place, int rank) { return place + "/" + std::to_string(rank); }

[[noreturn]] void throw_late(const Communicator::Identity& identity, const std::string& who) {
  throw CodedError("COLLECTIVE_TIMEOUT", "[openCommunicator " + identity.name + "] expected " + std::to_string(identity.size) +
                                             " ranks within " + std::to_string(identity.deadline_ms) + " ms, got all but " + who +
                                             " (see whether it runs, or allow more time)");
}

// Pauses between two looks around. The longest spares a store with many members.
constexpr Milliseconds kFirstPause(1), kLongestPause(50);

// Throws an error that names the ranks that have set nothing under `place`.
[[noreturn]] void throw_missing(const Communicator::Identity& identity, c10d::Store& store, const std::string& place) {
  std::vector<int> missing;
  for (int rank = 0; rank < identity.size; rank++) {
    if (!store.check({key_of(place, rank)})) missing.push_back(rank);
  }
  throw_late(identity, "rank " + join(missing));
}

std::string key_of_all(const std::string& place) { return place + "/all"; }

// Blocks until all members have come to `place`, looking around meanwhile: a store's own wait ends at its deadline alone.
void await_all(const Communicator::Identity& identity, c10d::Store& store, const std::string& place, const Look& look) {
  const auto end = std::chrono::steady_clock::now() + Milliseconds(identity.deadline_ms);
  for (Milliseconds pause = kFirstPause; !store.check({key_of_all(place)}); pause = std::min(2 * pause, kLongestPause)) {
    if (std::chrono::steady_clock::now() >= end) throw_missing(identity, store, place);
    look();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

bool is_on_this_host(const std::string& rendezvous) {
  const size_t colon = colon_of(rendezvous);
  if (colon == std::string::npos) return true;
  const size_t begin = is_kept(rendezvous) ? sizeof kKept - 1 : 0;
  const std::string host = rendezvous.substr(begin, colon - begin);
  return is_loopback(host);
}

StorePointer open_group_store(const Communicator::Identity& identity) {
  try {
    return c10::make_intrusive<c10d::PrefixStore>(identity.name, store_at(identity));
  } catch (const std::exception& error) {
    throw_late(identity, "rank 0 (" + plain_message(error) + ")");
  }
}

std::vector<Bytes> meet(const Communicator::Identity& identity, c10d::Store& store, const Bytes& brought, const Look& look) {
  const std::string size = std::to_string(identity.size);
  const Bytes agreed = store.compareSet("size", {}, bytes_of(size));
  if (agreed != bytes_of(size)) {
    refuse(identity, "the size that the others have (" + std::string(agreed.begin(), agreed.end()) + ")", size);
  }
  if (store.compareSet(key_of("members", identity.rank), {}, brought) != brought) {
    refuse(identity, "one member for rank " + std::to_string(identity.rank), "another (give a rebuilt group a new name)");
  }
  // The last rank to join stores all values as one, so that each rank asks for one value and not for every other's.
  if (store.add("members", 1) == identity.size) {
    std::vector<std::string> keys;
    for (int rank = 0; rank < identity.size; rank++) keys.push_back(key_of("members", rank));
    store.set(key_of_all("members"), joined(store.multiGet(keys)));
  }
  if (look) await_all(identity, store, "members", look);
  try {
    return parted(store.get(key_of_all("members")));
  } catch (const std::exception&) {
    throw_missing(identity, store, "members");
  }
}

void wait_for_all(const Communicator::Identity& identity, c10d::Store& store, const std::string& place, const Look& look) {
  store.set(key_of(place, identity.rank), bytes_of("1"));
  if (store.add(place, 1) == identity.size) store.set(key_of_all(place), bytes_of("1"));
  if (look) return await_all(identity, store, place, look);
  try {
    store.wait({key_of_all(place)}, Milliseconds(identity.deadline_ms));
  } catch (const std::exception&) {
    throw_missing(identity, store, place);
  }
}

}  // namespace troupe::comm

#endif
