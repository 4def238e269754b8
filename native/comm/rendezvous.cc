#include "comm/rendezvous.h"

#if HAVE_GLOO

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <map>
#include <mutex>

#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe::comm {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;
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
  if (!entry.store) entry.store = c10::make_intrusive<c10d::HashStore>();
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

// Before the address of a store that somebody else keeps: no member listens.
constexpr const char kKept[] = "store:";

bool is_kept(const std::string& rendezvous) { return rendezvous.rfind(kKept, 0) == 0; }

StorePointer store_at(const Communicator::Identity& identity) {
  if (identity.rendezvous.empty()) return store_in_process(identity);
  const bool kept = is_kept(identity.rendezvous);
  const std::string rendezvous = kept ? identity.rendezvous.substr(sizeof kKept - 1) : identity.rendezvous;
  const size_t colon = colon_of(rendezvous);
  if (colon == std::string::npos) return c10::make_intrusive<c10d::FileStore>(rendezvous, identity.size);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(std::stoi(rendezvous.substr(colon + 1)));
  options.isServer = !kept && identity.rank == 0;
  options.waitWorkers = false;
  options.timeout = Milliseconds(identity.deadline_ms);
  options.multiTenant = true;
  return c10::make_intrusive<c10d::TCPStore>(rendezvous.substr(0, colon), options);
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

[[noreturn]] void refuse(const Communicator::Identity& identity, const std::string& expected, const std::string& got) {
  throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator " + identity.name + "] expected " + expected + ", got " + got);
}

[[noreturn]] void throw_late(const Communicator::Identity& identity, const std::string& who) {
  throw CodedError("COLLECTIVE_TIMEOUT", "[openCommunicator " + identity.name + "] expected " + std::to_string(identity.size) +
                                             " ranks within " + std::to_string(identity.deadline_ms) + " ms, got all but " + who +
                                             " (see whether it runs, or allow more time)");
}

}  // namespace

bool is_on_this_host(const std::string& rendezvous) {
  const size_t colon = colon_of(rendezvous);
  if (colon == std::string::npos) return true;
  const size_t begin = is_kept(rendezvous) ? sizeof kKept - 1 : 0;
  const std::string host = rendezvous.substr(begin, colon - begin);
  return host == "localhost" || host == "[::1]" || host.rfind("127.", 0) == 0;
}

StorePointer meet(const Communicator::Identity& identity) {
  StorePointer at;
  try {
    at = store_at(identity);
  } catch (const std::exception& error) {
    throw_late(identity, "rank 0 (" + plain_message(error) + ")");
  }
  auto store = c10::make_intrusive<c10d::PrefixStore>(identity.name, at);
  store->setTimeout(Milliseconds(identity.deadline_ms));
  const std::string size = std::to_string(identity.size);
  const std::vector<uint8_t> agreed = store->compareSet("size", {}, bytes_of(size));
  if (agreed != bytes_of(size)) {
    refuse(identity, "the size that the others have (" + std::string(agreed.begin(), agreed.end()) + ")", size);
  }
  if (store->add("members/" + std::to_string(identity.rank), 1) != 1) {
    refuse(identity, "one member for rank " + std::to_string(identity.rank), "another (a group that is built anew takes a new name)");
  }
  wait_for_all(identity, *store, "met");
  return store;
}

void wait_for_all(const Communicator::Identity& identity, c10d::Store& store, const std::string& place) {
  const auto key_of = [&](int rank) { return place + "/" + std::to_string(rank); };
  const std::string all = place + "/all";
  store.set(key_of(identity.rank), bytes_of("1"));
  // Of many ranks each asks for one key, not for every other's: those say who is missing.
  if (store.add(place, 1) == identity.size) store.set(all, bytes_of("1"));
  try {
    store.wait({all}, Milliseconds(identity.deadline_ms));
  } catch (const std::exception&) {
    std::vector<int> missing;
    for (int rank = 0; rank < identity.size; rank++) {
      if (!store.check({key_of(rank)})) missing.push_back(rank);
    }
    throw_late(identity, "rank " + join(missing));
  }
}

}  // namespace troupe::comm

#endif
