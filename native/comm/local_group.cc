#include "comm/local_group.h"

#include <algorithm>
#include <numeric>

#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe::comm {
namespace {

size_t place_in(const Lane& lane, int rank) {
  return static_cast<size_t>(std::find(lane.ranks.begin(), lane.ranks.end(), rank) - lane.ranks.begin());
}

// Whether another member's signature contradicts that of the member at `place`.
bool is_mismatch(const LocalCollective& collective, size_t place) {
  for (size_t other = 0; other < collective.ranks.size(); other++) {
    if (other == place || collective.signatures[other].kind == Signature::kAbsent) continue;
    const Signature mine = signature_of(collective.parts[place], collective.sequence, collective.ranks[place], collective.ranks[other]);
    const Signature theirs = signature_of(collective.parts[other], collective.sequence, collective.ranks[other], collective.ranks[place]);
    if (!agree(mine, theirs)) return true;
  }
  return false;
}

// Why ranks cannot trade bytes: one of them has its tensors on another kind of device. Empty if they can.
std::string describe_other_device(const std::string& name, const LocalCollective& collective, size_t place) {
  for (size_t other = 0; other < collective.ranks.size(); other++) {
    if (collective.signatures[other].kind == Signature::kAbsent || collective.parts[place].kind == Kind::barrier) continue;
    const c10::Device mine = collective.parts[place].device(), theirs = collective.parts[other].device();
    if (mine.type() == theirs.type()) continue;
    return "[collective " + name + "] expected tensors of one kind of device, got " + theirs.str() + " of rank " +
           std::to_string(collective.ranks[other]) + " and " + mine.str() + " of rank " + std::to_string(collective.ranks[place]);
  }
  return "";
}

}  // namespace

LocalGroup::LocalGroup(std::string name, int size)
    : name_(std::move(name)), size_(size), members_(static_cast<size_t>(size), Member::absent), failure_{nullptr, ""} {
  collectives_.ranks.resize(static_cast<size_t>(size));
  std::iota(collectives_.ranks.begin(), collectives_.ranks.end(), 0);
  collectives_.issued.assign(static_cast<size_t>(size), 0);
}

LocalGroup::~LocalGroup() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    helper_wanted_.notify_all();
  }
  if (helper_.joinable()) helper_.join();
}

void LocalGroup::join(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Member& member = members_[static_cast<size_t>(rank)];
  if (member != Member::absent) {
    throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator] expected one member for rank " + std::to_string(rank) + " of " + name_ +
                                                ", got another (give a rebuilt group a new name)");
  }
  member = Member::present;
}

bool LocalGroup::leave(int rank) {
  std::unique_lock<std::mutex> lock(mutex_);
  members_[static_cast<size_t>(rank)] = Member::left;
  const auto check = [&](const Lane& lane) {
    for (const auto& collective : lane.collectives) fail_for_the_left(lane, *collective);
  };
  check(collectives_);
  for (const auto& [pair, lane] : pairs_) check(lane);
  if (std::find(members_.begin(), members_.end(), Member::present) != members_.end()) return false;
  stopping_ = true;
  helper_wanted_.notify_all();
  lock.unlock();
  if (helper_.joinable()) helper_.join();
  return true;
}

void LocalGroup::fail_for_the_left(const Lane& lane, const LocalCollective& collective) {
  for (size_t i = 0; i < lane.ranks.size(); i++) {
    const int rank = lane.ranks[i];
    if (collective.signatures[i].kind != Signature::kAbsent || members_[static_cast<size_t>(rank)] != Member::left) continue;
    fail_locked({"COLLECTIVE_ABORTED", "[collective " + name_ + "] every rank to live was expected: rank " + std::to_string(rank) +
                                          " has left after #" + std::to_string(lane.issued[i]) + ", #" +
                                          std::to_string(collective.sequence) + " needs it (see its own failure)"});
  }
}

void LocalGroup::fail(Failure failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fail_locked(std::move(failure));
}

void LocalGroup::fail_locked(Failure failure) {
  if (failed_.load(std::memory_order_relaxed)) return;
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void LocalGroup::throw_failure() {
  // Written once, before failed_.
  throw CodedError(failure_.code, failure_.message, {{"group", name_}});
}

Lane& LocalGroup::lane_of(const Operation& operation, int rank) {
  if (operation.kind != Kind::send && operation.kind != Kind::recv) return collectives_;
  const std::pair<int, int> ends = operation.kind == Kind::send ? std::make_pair(rank, operation.peer)
                                                                : std::make_pair(operation.peer, rank);
  const std::lock_guard<std::mutex> lock(mutex_);
  Lane& lane = pairs_[ends];
  if (lane.ranks.empty()) {
    lane.ranks = {ends.first, ends.second};
    lane.issued = {0, 0};
  }
  return lane;
}

std::shared_ptr<LocalCollective> LocalGroup::post(Lane& lane, int rank, Operation operation) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (has_failed()) throw_failure();
  const size_t place = place_in(lane, rank);
  const int64_t sequence = ++lane.issued[place];
  const auto index = static_cast<size_t>(sequence - lane.num_finished - 1);
  if (index == lane.collectives.size()) lane.collectives.push_back(std::make_shared<LocalCollective>(sequence, lane.ranks));
  const std::shared_ptr<LocalCollective> collective = lane.collectives[index];
  collective->signatures[place] = signature_of(operation, sequence, rank, rank);
  collective->arrivals[place] = Fence::here(operation.device());
  collective->parts[place] = std::move(operation);
  if (is_mismatch(*collective, place)) {
    fail_locked({"COLLECTIVE_MISMATCH", describe_mismatch(name_, lane.ranks, collective->signatures)});
  }
  if (const std::string other = describe_other_device(name_, *collective, place); !other.empty()) fail_locked({"COLLECTIVE_MISMATCH", other});
  fail_for_the_left(lane, *collective);
  if (has_failed()) throw_failure();
  if (++collective->num_arrived < lane.ranks.size()) return collective;
  collective->plan();
  start_if_ready(lane, lock);
  return collective;
}

void LocalGroup::start_if_ready(Lane& lane, std::unique_lock<std::mutex>& lock) {
  while (!has_failed() && !lane.collectives.empty()) {
    LocalCollective& first = *lane.collectives.front();
    if (!first.complete() || first.runnable.load(std::memory_order_relaxed)) return;
    first.runnable.store(true, std::memory_order_release);
    if (!first.is_small()) return hand_over(lane);
    if (!help_first(lane, lock)) return;  // a waiting thread was quicker, and goes on from here
  }
}

void LocalGroup::hand_over(Lane& lane) {
  if (lane.num_waiting > 0) return changed_.notify_all();
  if (!helper_.joinable() && !stopping_) helper_ = std::thread([this] { help_until_stopped(); });
  helper_wanted_.notify_one();
}

bool LocalGroup::help_first(Lane& lane, std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<LocalCollective> collective = lane.collectives.front();
  lock.unlock();
  bool was_last = false;
  std::string error;
  try {
    was_last = collective->help();
  } catch (const std::exception& exception) {
    error = plain_message(exception);
  }
  lock.lock();
  if (!error.empty()) fail_locked({"NATIVE_FAILED", "[collective " + name_ + "] " + error});
  if (!was_last) return false;
  lane.collectives.pop_front();
  lane.num_finished++;
  collective->release();
  collective->finished.store(true, std::memory_order_release);
  if (lane.num_waiting > 0) changed_.notify_all();
  return true;
}

void LocalGroup::await(Lane& lane, const LocalCollective& collective, Clock::time_point deadline, int64_t deadline_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  lane.num_waiting++;
  while (!collective.finished.load(std::memory_order_acquire) && !has_failed()) {
    if (lane.has_work()) {
      if (help_first(lane, lock)) start_if_ready(lane, lock);
    } else if (Clock::now() < deadline) {
      changed_.wait_until(lock, deadline);
    } else if (!lane.collectives.front()->complete()) {
      fail_for_the_late(lane, *lane.collectives.front(), deadline_ms);
    } else {
      changed_.wait(lock);  // others are at work on it, and working ends
    }
  }
  lane.num_waiting--;
  if (lane.num_waiting == 0 && lane.has_work() && !has_failed()) hand_over(lane);
}

void LocalGroup::fail_for_the_late(const Lane& lane, const LocalCollective& collective, int64_t deadline_ms) {
  const std::vector<int> missing = collective.missing();
  std::string text = "[collective " + name_ + "] ";
  for (size_t i = 0; i < collective.ranks.size(); i++) {
    if (collective.signatures[i].kind == Signature::kAbsent) continue;
    text += describe(collective.signatures[i]) + " of rank " + std::to_string(collective.ranks[i]);
    break;
  }
  text += " on every rank within " + std::to_string(deadline_ms) + " ms was expected: rank " + comm::join(missing) + " did not come, after #";
  text += std::to_string(lane.issued[place_in(lane, missing.front())]) + " (see what it does, or allow more time)";
  fail_locked({"COLLECTIVE_TIMEOUT", text});
}

void LocalGroup::help_until_stopped() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    Lane* const lane = has_failed() ? nullptr : lane_with_work();
    if (lane == nullptr) {
      helper_wanted_.wait(lock);
    } else if (help_first(*lane, lock)) {
      start_if_ready(*lane, lock);
    }
  }
}

Lane* LocalGroup::lane_with_work() {
  if (collectives_.has_work()) return &collectives_;
  for (auto& [ends, lane] : pairs_) {
    if (lane.has_work()) return &lane;
  }
  return nullptr;
}

}  // namespace troupe::comm
