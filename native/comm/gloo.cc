#include "comm/gloo.h"

#include "comm/backends.h"
#include "core/error.h"

#if HAVE_GLOO

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "comm/alarm.h"
#include "comm/exchange.h"
#include "comm/rendezvous.h"
#include "comm/store.h"
#include "core/dispatch/describe.h"

namespace troupe::comm {
namespace {

using c10d::ProcessGroupGloo;
using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

c10::intrusive_ptr<ProcessGroupGloo::Options> options(std::chrono::milliseconds timeout, const std::string& rendezvous) {
  auto result = ProcessGroupGloo::Options::create(timeout);
  result->threads = 1;  // messages need none; libtorch's own collectives, which would, are not used
  // By address: the default device asks for this host's name, which not every machine can resolve.
  const std::string address = host_address();
  if (is_on_this_host(rendezvous)) result->devices.push_back(ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  else result->devices.push_back(address.empty() ? ProcessGroupGloo::createDefaultDevice() : ProcessGroupGloo::createDeviceForHostname(address));
  return result;
}

// What Gloo says, without the place in its sources and its advice.
std::string reason_of(const std::exception& error) {
  std::string text = plain_message(error);
  const size_t place_end = text.find("] ");
  if (text.rfind('[', 0) == 0 && place_end != std::string::npos) text.erase(0, place_end + 2);
  const size_t advice = text.find(". This is typically");
  return advice == std::string::npos ? text : text.substr(0, advice);
}

// The store that Gloo uses. Setting this rank's address joins the rendezvous, and fetches the addresses of all others at once.
class AddressBook final : public c10d::Store {
 public:
  // The members contradict each other, some did not join, or the rendezvous is gone. Not a runtime_error: Gloo prints and replaces those.
  struct NotMet {
    CodedError reason;
  };

  AddressBook(const Communicator::Identity& identity, StorePointer store, Look look)
      : identity_(identity), store_(std::move(store)), look_(std::move(look)) {}

  void set(const std::string&, const Bytes& address) override {
    try {
      addresses_ = meet(identity_, *store_, address, look_);
    } catch (const CodedError& reason) {
      throw NotMet{reason};
    } catch (const std::exception& error) {
      const std::string expected = identity_.rendezvous + " to stay until every rank has come";
      throw NotMet{{"COLLECTIVE_ABORTED", "[openCommunicator " + identity_.name + "] expected " + expected + ", got " + reason_of(error)}};
    }
  }
  // The key ends in the member's rank.
  Bytes get(const std::string& key) override { return addresses_.at(std::stoul(key.substr(key.rfind('/') + 1))); }
  bool check(const std::vector<std::string>&) override { return !addresses_.empty(); }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<AddressBook>(*this); }
  int64_t add(const std::string& key, int64_t amount) override { return store_->add(key, amount); }
  bool deleteKey(const std::string& key) override { return store_->deleteKey(key); }
  int64_t getNumKeys() override { return store_->getNumKeys(); }

 private:
  const Communicator::Identity identity_;
  const StorePointer store_;
  const Look look_;
  std::vector<Bytes> addresses_;
};

// Calls `act` once when `seen` becomes true, until it is destroyed. It takes a thread, so it is used only when a member is late.
class Lookout {
 public:
  Lookout(const std::function<bool()>& seen, std::function<void()> act) {
    if (!seen) return;
    thread_ = std::thread([this, &seen, act = std::move(act)] {
      while (!over_ && !seen()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (!over_) act();
    });
  }
  ~Lookout() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

class GlooTransport final : public Transport {
 public:
  explicit GlooTransport(std::shared_ptr<ProcessGroupGloo> group) : group_(std::move(group)) {}

  std::vector<Loss> exchange(const std::vector<Message>& sends, const std::vector<Message>& receives,
                             std::chrono::steady_clock::time_point deadline, const std::function<bool()>& needless) override {
    std::vector<Loss> losses;
    const Exchange exchange = begin(sends, receives, losses);
    if (losses.empty()) {
      const Alarm alarm(deadline, [&] { interrupt(*exchange); });
      const Lookout lookout(needless, [&] { interrupt(*exchange); });
      finish(exchange, sends, receives, losses);
    }
    end(exchange);
    return losses;
  }

  void interrupt() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    for (const Works& works : under_way_) interrupt(works);
  }

  void close() override {
    std::shared_ptr<ProcessGroupGloo> closing;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (under_way_.empty()) closing = std::move(group_);
    closed_ = true;
  }

 private:
  using Exchange = std::list<Works>::iterator;

  static void interrupt(const Works& works) {
    for (const auto& work : works) work->abort();
  }

  // Receives are posted first, so that early data has its place.
  Exchange begin(const std::vector<Message>& sends, const std::vector<Message>& receives, std::vector<Loss>& losses) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Exchange exchange = under_way_.emplace(under_way_.end());
    const auto post = [&](const Message& message, auto start) {
      std::vector<at::Tensor> memory = {message.memory};
      try {
        if (interrupted_ || !group_) return losses.push_back({message.peer, ""});
        exchange->push_back(start(memory));
      } catch (const std::exception& error) {
        losses.push_back({message.peer, reason_of(error)});
      }
    };
    for (const Message& message : receives) {
      post(message, [&](auto& memory) { return group_->recv(memory, message.peer, message.tag); });
    }
    for (const Message& message : sends) {
      post(message, [&](auto& memory) { return group_->send(memory, message.peer, message.tag); });
    }
    return exchange;
  }

  static void finish(Exchange exchange, const std::vector<Message>& sends, const std::vector<Message>& receives,
                     std::vector<Loss>& losses) {
    for (size_t i = 0; i < exchange->size(); i++) {
      const int peer = i < receives.size() ? receives[i].peer : sends[i - receives.size()].peer;
      try {
        if (!(*exchange)[i]->wait()) losses.push_back({peer, ""});
      } catch (const std::exception& error) {
        losses.push_back({peer, reason_of(error)});
        interrupt(*exchange);  // the exchange cannot complete: no other peer need wait
      }
    }
  }

  void end(Exchange exchange) {
    std::shared_ptr<ProcessGroupGloo> closing;
    const std::lock_guard<std::mutex> lock(mutex_);
    under_way_.erase(exchange);
    if (closed_ && under_way_.empty()) closing = std::move(group_);
  }

  std::mutex mutex_;
  std::shared_ptr<ProcessGroupGloo> group_;
  std::list<Works> under_way_;
  bool interrupted_ = false;
  bool closed_ = false;
};

}  // namespace

bool gloo_built() { return true; }

std::shared_ptr<Transport> connect_gloo(const Communicator::Identity& identity, const StorePointer& store, const Look& look) {
  // Gloo's own timeout breaks the connections and names nobody: it is the net under the alarm, which does neither.
  const std::chrono::milliseconds timeout(2 * identity.deadline_ms + 10'000);
  std::exception_ptr seen;  // by `look`: Gloo would print and replace it
  const auto looking = [&] {
    try {
      look();
    } catch (...) {
      seen = std::current_exception();
      throw;
    }
  };
  const Look look_around = look ? Look(looking) : Look();
  try {
    const auto book = c10::make_intrusive<AddressBook>(identity, store, look_around);
    auto group = std::make_shared<ProcessGroupGloo>(book, identity.rank, identity.size, options(timeout, identity.rendezvous));
    // Nobody leaves while others still connect: they would take it for a failure.
    wait_for_all(identity, *store, "connected", look_around);
    return std::make_shared<GlooTransport>(std::move(group));
  } catch (const AddressBook::NotMet& not_met) {
    if (seen) std::rethrow_exception(seen);
    throw CodedError(not_met.reason);
  } catch (const CodedError&) {
    throw;
  } catch (const std::exception& error) {
    if (seen) std::rethrow_exception(seen);
    throw CodedError("COLLECTIVE_ABORTED", "[openCommunicator " + identity.name + "] expected every rank to stay until all are connected, got " +
                                               reason_of(error));
  }
}

std::shared_ptr<Communicator> make_gloo(Communicator::Identity identity, const Look& look) {
  const std::shared_ptr<Transport> transport = connect_gloo(identity, open_group_store(identity), look);
  return std::make_shared<ExchangeCommunicator>(std::move(identity), transport);
}

void check_gloo() {
  ProcessGroupGloo group(c10::make_intrusive<c10d::HashStore>(), /*rank=*/0, /*size=*/1, options(std::chrono::seconds(10), ""));
  std::vector<at::Tensor> sum = {at::ones({2})};
  group.allreduce(sum)->wait();
  if (!at::equal(sum[0], at::ones({2}))) {
    throw CodedError("GLOO_UNAVAILABLE", "[gloo] expected the sum over one rank to equal its input, got another (npm run build:native)");
  }
}

}  // namespace troupe::comm

#else

namespace troupe::comm {
namespace {

[[noreturn]] void throw_not_built() {
  throw CodedError("GLOO_UNAVAILABLE",
                   "[gloo] expected an addon built with Gloo, got one built without its headers (apt install libgloo-dev, npm run build:native)");
}

}  // namespace

bool gloo_built() { return false; }

std::shared_ptr<Communicator> make_gloo(Communicator::Identity, const Look&) { throw_not_built(); }

void check_gloo() { throw_not_built(); }

}  // namespace troupe::comm

#endif
