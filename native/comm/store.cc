#include "comm/store.h"

#include <map>
#include <mutex>

#include "comm/listening.h"
#include "core/dispatch/describe.h"
#include "core/error.h"

#if HAVE_GLOO
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace troupe::comm {
namespace {

struct HostAddress {
  std::mutex mutex;
  std::string address;
};

HostAddress& told_host() {
  static HostAddress* const instance = new HostAddress;
  return *instance;
}

}  // namespace

void set_host_address(const std::string& address) {
  const std::lock_guard<std::mutex> lock(told_host().mutex);
  told_host().address = address;
}

std::string host_address() {
  const std::lock_guard<std::mutex> lock(told_host().mutex);
  return told_host().address;
}

#if HAVE_GLOO

namespace {

using TcpStorePointer = c10::intrusive_ptr<c10d::TCPStore>;

struct OpenStores {
  std::mutex mutex;
  std::map<int64_t, TcpStorePointer> by_number;
  int64_t next = 1;
};

OpenStores& open_stores() {
  static OpenStores* const instance = new OpenStores;
  return *instance;
}

template <typename Use>
auto with_store(int64_t number, Use use) {
  TcpStorePointer store;
  {
    const std::lock_guard<std::mutex> lock(open_stores().mutex);
    const auto found = open_stores().by_number.find(number);
    if (found != open_stores().by_number.end()) store = found->second;
  }
  if (!store) throw CodedError("STORE_UNREACHABLE", "[store] expected an open store, got one that is closed");
  try {
    return use(*store);
  } catch (const std::exception& error) {
    throw CodedError("STORE_UNREACHABLE", "[store] an answer was expected: " + plain_message(error));
  }
}

}  // namespace

int64_t open_store(const std::string& host, int port, bool listens, int64_t timeout_ms) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = listens;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(timeout_ms);
  options.multiTenant = true;
  try {
    if (listens) listen_at(host, options);
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    const std::lock_guard<std::mutex> lock(open_stores().mutex);
    open_stores().by_number.emplace(open_stores().next, std::move(store));
    return open_stores().next++;
  } catch (const std::exception& error) {
    throw CodedError("STORE_UNREACHABLE", "[store] expected a store " + std::string(listens ? "to open at " : "that listens at ") + host +
                                              ":" + std::to_string(port) + ", got \"" + plain_message(error) + "\"");
  }
}

void set_in_store(int64_t store, const std::string& key, const std::string& value) {
  with_store(store, [&](c10d::TCPStore& open) {
    open.set(key, std::vector<uint8_t>(value.begin(), value.end()));
    return 0;
  });
}

std::optional<std::string> read_from_store(int64_t store, const std::string& key) {
  return with_store(store, [&](c10d::TCPStore& open) -> std::optional<std::string> {
    if (!open.check({key})) return std::nullopt;
    const std::vector<uint8_t> bytes = open.get(key);
    return std::string(bytes.begin(), bytes.end());
  });
}

int64_t add_in_store(int64_t store, const std::string& key, int64_t amount) {
  return with_store(store, [&](c10d::TCPStore& open) { return open.add(key, amount); });
}

int store_port(int64_t store) {
  return with_store(store, [](const c10d::TCPStore& open) { return static_cast<int>(open.getPort()); });
}

void close_store(int64_t store) {
  TcpStorePointer closing;
  const std::lock_guard<std::mutex> lock(open_stores().mutex);
  const auto node = open_stores().by_number.extract(store);
  if (!node.empty()) closing = std::move(node.mapped());
}

#else

namespace {

[[noreturn]] void throw_no_store() {
  throw CodedError("GLOO_UNAVAILABLE",
                   "[store] expected an addon built with Gloo, got one built without its headers (apt install libgloo-dev, npm run build:native)");
}

}  // namespace

int64_t open_store(const std::string&, int, bool, int64_t) { throw_no_store(); }

void set_in_store(int64_t, const std::string&, const std::string&) { throw_no_store(); }

std::optional<std::string> read_from_store(int64_t, const std::string&) { throw_no_store(); }

int64_t add_in_store(int64_t, const std::string&, int64_t) { throw_no_store(); }

int store_port(int64_t) { throw_no_store(); }

void close_store(int64_t) { throw_no_store(); }

#endif

}  // namespace troupe::comm
