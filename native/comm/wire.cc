#include "comm/wire.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace troupe::comm {
namespace {

// One message each way that every operation begins with: the signature, and bytes that fit beside it.
constexpr int64_t kEnvelopeBytes = 1024;
constexpr int64_t kInlineBytes = kEnvelopeBytes - static_cast<int64_t>(sizeof(Signature));

bool travels_alone(const at::Tensor& memory) { return memory.defined() && memory.nbytes() > 0 && !rides_along(memory); }

uint8_t* bytes_of(const at::Tensor& envelopes, size_t index) {
  return envelopes.data_ptr<uint8_t>() + static_cast<int64_t>(index) * kEnvelopeBytes;
}

std::string peers_of(const std::vector<Loss>& losses) {
  std::vector<int> peers;
  for (const Loss& loss : losses) {
    if (std::find(peers.begin(), peers.end(), loss.peer) == peers.end()) peers.push_back(loss.peer);
  }
  return join(peers);
}

}  // namespace

// Messages of one operation between two ranks, apart by the last digit of their tags.
enum Wire::Step : int { collective_envelope, collective_bytes, collective_result, pair_envelope, pair_reply, pair_bytes, num_steps };

Failure FirstFailure::keep(Failure failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) failure_.reset(new Failure(std::move(failure)));
  return *failure_;
}

void FirstFailure::throw_if_any() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) throw CodedError(failure_->code, failure_->message);
}

bool rides_along(const at::Tensor& memory) {
  return memory.defined() && memory.is_cpu() && static_cast<int64_t>(memory.nbytes()) <= kInlineBytes;
}

Wire::Wire(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation)
    : Wire(setting, ranks, sequence, operation,
           std::chrono::steady_clock::now() + std::chrono::milliseconds(setting.identity.deadline_ms)) {}

Wire::Wire(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation,
           std::chrono::steady_clock::time_point deadline)
    : setting_(setting), ranks_(ranks), sequence_(sequence), operation_(operation), deadline_(deadline) {}

void Wire::compare() {
  std::vector<Trade> all;
  for (const int peer : ranks_) {
    if (peer != rank()) all.push_back({peer, {}, {}});
  }
  exchange_envelopes(all);
}

int Wire::tag_of(Step step) const {
  constexpr int64_t kSequences = int64_t{1} << 27;
  return static_cast<int>(sequence_ % kSequences) * num_steps + step;
}

void Wire::trade_results(const std::vector<Trade>& all) { move(all, collective_result); }

void Wire::trade(const std::vector<Trade>& all) {
  exchange_envelopes(all);
  move(all, is_pair() ? pair_bytes : collective_bytes);
}

void Wire::exchange_envelopes(const std::vector<Trade>& all) {
  const auto count = static_cast<int64_t>(all.size());
  const at::Tensor sent = at::empty({count, kEnvelopeBytes}, at::kByte), taken = at::empty({count, kEnvelopeBytes}, at::kByte);
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < all.size(); i++) {
    const at::Tensor out = sent.select(0, static_cast<int64_t>(i)), in = taken.select(0, static_cast<int64_t>(i));
    fill(out, all[i]);
    sends.push_back({all[i].peer, tag_of(envelope_step(operation_.kind == Kind::send)), out});
    receives.push_back({all[i].peer, tag_of(envelope_step(operation_.kind == Kind::recv)), in});
  }
  carry(setting_.transport, sends, receives);
  check_signatures(all, taken);
  for (size_t i = 0; i < all.size(); i++) {
    const at::Tensor& memory = all[i].incoming;
    if (!rides_along(memory) || memory.nbytes() == 0) continue;
    std::memcpy(memory.data_ptr(), bytes_of(taken, i) + sizeof(Signature), memory.nbytes());
  }
}

Wire::Step Wire::envelope_step(bool from_sender) const {
  if (!is_pair()) return collective_envelope;
  return from_sender ? pair_envelope : pair_reply;
}

void Wire::fill(const at::Tensor& envelope, const Trade& with) const {
  const Signature signature = signature_of(operation_, sequence_, rank(), with.peer);
  std::memcpy(envelope.data_ptr(), &signature, sizeof(signature));
  if (!rides_along(with.outgoing) || with.outgoing.nbytes() == 0) return;
  std::memcpy(envelope.data_ptr<uint8_t>() + sizeof(signature), with.outgoing.data_ptr(), with.outgoing.nbytes());
}

void Wire::check_signatures(const std::vector<Trade>& all, const at::Tensor& envelopes) {
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

void Wire::move(const std::vector<Trade>& all, Step step) {
  // Results have no envelope to ride with.
  const auto is_moved = [&](const at::Tensor& memory) {
    return step == collective_result ? memory.nbytes() > 0 : travels_alone(memory);
  };
  std::vector<Message> sends, receives;
  for (const Trade& with : all) {
    if (is_moved(with.outgoing)) sends.push_back({with.peer, tag_of(step), with.outgoing});
    if (is_moved(with.incoming)) receives.push_back({with.peer, tag_of(step), with.incoming});
  }
  if (!sends.empty() || !receives.empty()) carry(setting_.transport, sends, receives);
}

void Wire::carry(Transport& transport, const std::vector<Message>& sends, const std::vector<Message>& receives) {
  if (sends.empty() && receives.empty()) return;  // a group of one
  const std::vector<Loss> losses = transport.exchange(sends, receives, deadline_);
  if (losses.empty()) return;
  setting_.failure.throw_if_any();  // the group was aborted
  const std::string here = "[collective " + setting_.identity.name + "] ";
  for (const Loss& loss : losses) {
    if (loss.reason.empty()) continue;
    throw_failure({"COLLECTIVE_ABORTED", here + "every rank to live was expected: rank " + std::to_string(loss.peer) +
                                             " has ended or closed the group (" + loss.reason + ")"});
  }
  throw_late(losses);
}

void Wire::throw_late(const std::vector<Loss>& losses) {
  const std::string what = describe(signature_of(operation_, sequence_, rank(), rank()));
  throw_failure({"COLLECTIVE_TIMEOUT", "[collective " + setting_.identity.name + "] " + what + " on every rank within " +
                                           std::to_string(setting_.identity.deadline_ms) + " ms was expected: rank " +
                                           peers_of(losses) + " did not come (see what it does, or allow more time)"});
}

void Wire::throw_failure(Failure failure) {
  const Failure first = setting_.failure.keep(std::move(failure));
  throw CodedError(first.code, first.message);
}

}  // namespace troupe::comm
