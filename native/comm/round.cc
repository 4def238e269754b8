#include "comm/round.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "comm/rank_order.h"
#include "core/error.h"

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;

// One message each way that every operation begins with: the signature, and bytes that fit beside it.
constexpr int64_t kEnvelopeBytes = 1024;
constexpr int64_t kInlineBytes = kEnvelopeBytes - static_cast<int64_t>(sizeof(Signature));

// Messages of one operation between two ranks, apart by the last digit of their tags.
enum Step { collective_envelope, collective_bytes, collective_result, pair_envelope, pair_reply, pair_bytes, num_steps };

int tag_of(int64_t sequence, Step step) {
  constexpr int64_t kSequences = int64_t{1} << 27;
  return static_cast<int>(sequence % kSequences) * num_steps + step;
}

// What one rank sends to another and takes from it; undefined: nothing.
struct Trade {
  int peer;
  at::Tensor outgoing;
  at::Tensor incoming;
};

bool rides_along(const at::Tensor& memory) {
  return memory.defined() && memory.is_cpu() && static_cast<int64_t>(memory.nbytes()) <= kInlineBytes;
}

bool travels_alone(const at::Tensor& memory) { return memory.defined() && memory.nbytes() > 0 && !rides_along(memory); }

at::Tensor flat(const at::Tensor& tensor) { return tensor.view(-1); }

class Round {
 public:
  Round(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation)
      : setting_(setting), ranks_(ranks), sequence_(sequence), operation_(operation) {}

  void run() {
    setting_.failure.throw_if_any();
    deadline_ = Clock::now() + std::chrono::milliseconds(setting_.identity.deadline_ms);
    switch (operation_.kind) {
      case Kind::barrier: return trade(trades());
      case Kind::all_reduce: return all_reduce();
      case Kind::reduce_scatter: return reduce_scatter();
      case Kind::reduce: return reduce();
      case Kind::all_gather: return all_gather();
      case Kind::all_to_all: return all_to_all();
      case Kind::broadcast: return broadcast();
      case Kind::send: return trade({{operation_.peer, operation_.input, {}}});
      case Kind::recv: return trade({{operation_.peer, {}, operation_.output}});
    }
  }

 private:
  int rank() const { return setting_.identity.rank; }
  int size() const { return setting_.identity.size; }
  bool is_pair() const { return operation_.kind == Kind::send || operation_.kind == Kind::recv; }

  // One empty trade with every other rank, in rank order.
  std::vector<Trade> trades() const {
    std::vector<Trade> all;
    for (const int peer : ranks_) {
      if (peer != rank()) all.push_back({peer, {}, {}});
    }
    return all;
  }

  void broadcast() {
    std::vector<Trade> all = trades();
    for (Trade& with : all) {
      if (rank() == operation_.peer) with.outgoing = operation_.input;
      if (with.peer == operation_.peer) with.incoming = operation_.output;
    }
    trade(all);
  }

  void all_gather() {
    const at::Tensor output = flat(operation_.output), input = flat(operation_.input);
    int64_t begin = 0;
    std::vector<Trade> all = trades();
    for (int peer = 0, next = 0; peer < size(); peer++) {
      const int64_t numel = operation_.output_splits.empty() ? input.numel() : rows_of_peer(output, peer);
      const at::Tensor slot = output.narrow(0, begin, numel);
      begin += numel;
      if (peer != rank()) {
        all[static_cast<size_t>(next++)] = {peer, input, slot};
      } else if (slot.data_ptr() != input.data_ptr()) {
        slot.copy_(input);
      }
    }
    trade(all);
  }

  int64_t rows_of_peer(const at::Tensor& output, int peer) const {
    const int64_t rows = operation_.output.size(0);
    return rows == 0 ? 0 : operation_.output_splits[static_cast<size_t>(peer)] * (output.numel() / rows);
  }

  void all_to_all() {
    const at::Tensor output = flat(operation_.output), input = flat(operation_.input);
    const int64_t row = operation_.input.size(0) == 0 ? 1 : input.numel() / operation_.input.size(0);
    const int64_t output_row = operation_.output.size(0) == 0 ? 1 : output.numel() / operation_.output.size(0);
    std::vector<Trade> all = trades();
    int64_t from = 0, to = 0;
    for (int peer = 0, next = 0; peer < size(); peer++) {
      const int64_t sent = operation_.input_splits[static_cast<size_t>(peer)] * row;
      const int64_t taken = operation_.output_splits[static_cast<size_t>(peer)] * output_row;
      const at::Tensor outgoing = input.narrow(0, from, sent), incoming = output.narrow(0, to, taken);
      from += sent;
      to += taken;
      if (peer != rank()) {
        all[static_cast<size_t>(next++)] = {peer, outgoing, incoming};
      } else {
        incoming.copy_(outgoing);
      }
    }
    trade(all);
  }

  void reduce() {
    std::vector<Trade> all = trades();
    const at::Tensor input = flat(operation_.input);
    if (rank() == operation_.peer) return reduce_here(all, input, flat(operation_.output));
    for (Trade& with : all) {
      if (with.peer == operation_.peer) with.outgoing = input;
    }
    trade(all);
  }

  void reduce_scatter() {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    std::vector<Trade> all = trades();
    for (Trade& with : all) with.outgoing = input.narrow(0, with.peer * output.numel(), output.numel());
    reduce_here(all, input.narrow(0, rank() * output.numel(), output.numel()), output);
  }

  void all_reduce() {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    std::vector<Trade> all = trades();
    if (rides_along(input)) {
      for (Trade& with : all) with.outgoing = input;
      return reduce_here(all, input, output);
    }
    for (Trade& with : all) with.outgoing = slice(input, with.peer);
    const at::Tensor own = slice(output, rank());
    reduce_here(all, slice(input, rank()), own);
    for (Trade& with : all) with = {with.peer, own, slice(output, with.peer)};
    move(all, collective_result);
  }

  at::Tensor slice(const at::Tensor& whole, int peer) const {
    const int64_t begin = whole.numel() * peer / size(), end = whole.numel() * (peer + 1) / size();
    return whole.narrow(0, begin, end - begin);
  }

  // Takes from every other rank what is like `own`, and reduces all of it in rank order.
  void reduce_here(std::vector<Trade>& all, const at::Tensor& own, const at::Tensor& result) {
    std::vector<at::Tensor> sources(static_cast<size_t>(size()), own);
    for (Trade& with : all) {
      with.incoming = sources[static_cast<size_t>(with.peer)] = at::empty(own.sizes(), own.options());
    }
    trade(all);
    reduce_tensors(operation_.reduction, sources, result);
  }

  // The first step of every operation: signatures, and all bytes that all_reduce does not send later.
  void trade(const std::vector<Trade>& all) {
    exchange_envelopes(all);
    move(all, is_pair() ? pair_bytes : collective_bytes);
  }

  void exchange_envelopes(const std::vector<Trade>& all) {
    const auto count = static_cast<int64_t>(all.size());
    const at::Tensor sent = at::empty({count, kEnvelopeBytes}, at::kByte), taken = at::empty({count, kEnvelopeBytes}, at::kByte);
    std::vector<Message> sends, receives;
    for (size_t i = 0; i < all.size(); i++) {
      const at::Tensor out = sent.select(0, static_cast<int64_t>(i)), in = taken.select(0, static_cast<int64_t>(i));
      fill(out, all[i]);
      sends.push_back({all[i].peer, tag_of(sequence_, envelope_step(operation_.kind == Kind::send)), out});
      receives.push_back({all[i].peer, tag_of(sequence_, envelope_step(operation_.kind == Kind::recv)), in});
    }
    carry(setting_.signals, sends, receives);
    check_signatures(all, taken);
    for (size_t i = 0; i < all.size(); i++) {
      const at::Tensor& memory = all[i].incoming;
      if (!rides_along(memory) || memory.nbytes() == 0) continue;
      std::memcpy(memory.data_ptr(), bytes_of(taken, i) + sizeof(Signature), memory.nbytes());
    }
  }

  Step envelope_step(bool from_sender) const {
    if (!is_pair()) return collective_envelope;
    return from_sender ? pair_envelope : pair_reply;
  }

  static uint8_t* bytes_of(const at::Tensor& envelopes, size_t index) {
    return envelopes.data_ptr<uint8_t>() + static_cast<int64_t>(index) * kEnvelopeBytes;
  }

  void fill(const at::Tensor& envelope, const Trade& with) const {
    const Signature signature = signature_of(operation_, sequence_, rank(), with.peer);
    std::memcpy(envelope.data_ptr(), &signature, sizeof(signature));
    if (!rides_along(with.outgoing) || with.outgoing.nbytes() == 0) return;
    std::memcpy(envelope.data_ptr<uint8_t>() + sizeof(signature), with.outgoing.data_ptr(), with.outgoing.nbytes());
  }

  void check_signatures(const std::vector<Trade>& all, const at::Tensor& envelopes) {
    std::vector<Signature> by_place(ranks_.size());
    bool agreed = true;
    for (size_t place = 0, next = 0; place < ranks_.size(); place++) {
      Signature& theirs = by_place[place];
      if (ranks_[place] == rank()) {
        theirs = signature_of(operation_, sequence_, rank(), rank());
        continue;
      }
      std::memcpy(&theirs, bytes_of(envelopes, next), sizeof(theirs));
      agreed = agreed && agree(signature_of(operation_, sequence_, rank(), all[next].peer), theirs);
      next++;
    }
    if (agreed) return;
    throw_failure({"COLLECTIVE_MISMATCH", describe_mismatch(setting_.identity.name, ranks_, by_place)});
  }

  void move(const std::vector<Trade>& all, Step step) {
    std::vector<Message> sends, receives;
    for (const Trade& with : all) {
      if (is_moved(with.outgoing, step)) sends.push_back({with.peer, tag_of(sequence_, step), with.outgoing});
      if (is_moved(with.incoming, step)) receives.push_back({with.peer, tag_of(sequence_, step), with.incoming});
    }
    if (!sends.empty() || !receives.empty()) carry(setting_.payload, sends, receives);
  }

  // The results of an all-reduce have no envelope to ride with.
  static bool is_moved(const at::Tensor& memory, Step step) {
    return step == collective_result ? memory.nbytes() > 0 : travels_alone(memory);
  }

  void carry(Transport& transport, const std::vector<Message>& sends, const std::vector<Message>& receives) {
    if (sends.empty() && receives.empty()) return;  // a group of one
    const std::vector<Loss> losses = transport.exchange(sends, receives, deadline_);
    if (losses.empty()) return;
    setting_.failure.throw_if_any();  // somebody aborted
    const std::string here = "[collective " + setting_.identity.name + "] ";
    for (const Loss& loss : losses) {
      if (loss.reason.empty()) continue;
      throw_failure({"COLLECTIVE_ABORTED", here + "every rank to live was expected: rank " + std::to_string(loss.peer) +
                                               " has ended or closed the group (" + loss.reason + ")"});
    }
    throw_failure({"COLLECTIVE_TIMEOUT", here + describe(signature_of(operation_, sequence_, rank(), rank())) + " on every rank within " +
                                             std::to_string(setting_.identity.deadline_ms) + " ms was expected: rank " +
                                             peers_of(losses) + " did not come (see what it does, or allow more time)"});
  }

  static std::string peers_of(const std::vector<Loss>& losses) {
    std::vector<int> peers;
    for (const Loss& loss : losses) {
      if (std::find(peers.begin(), peers.end(), loss.peer) == peers.end()) peers.push_back(loss.peer);
    }
    return join(peers);
  }

  [[noreturn]] void throw_failure(Failure failure) {
    const Failure first = setting_.failure.keep(std::move(failure));
    throw CodedError(first.code, first.message);
  }

  const RoundSetting& setting_;
  const std::vector<int>& ranks_;
  const int64_t sequence_;
  const Operation& operation_;
  Clock::time_point deadline_;
};

}  // namespace

Failure FirstFailure::keep(Failure failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) failure_.reset(new Failure(std::move(failure)));
  return *failure_;
}

void FirstFailure::throw_if_any() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) throw CodedError(failure_->code, failure_->message);
}

void run_round(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation) {
  Round(setting, ranks, sequence, operation).run();
}

}  // namespace troupe::comm
