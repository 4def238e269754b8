#include "core/tensors/refs.h"

#include <mutex>
#include <unordered_map>

#include "core/error.h"

namespace troupe {
namespace {

struct Entry {
  PendingRef pending;
  uint32_t generation;
};

struct Table {
  std::mutex mutex;
  std::unordered_map<uint32_t, Entry> entries;
  uint32_t next_id = 1;
  uint32_t next_generation = 1;
};

// Never freed: workers may end after the library's own statics.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

[[noreturn]] void gone(RefId ref) {
  throw CodedError("TENSOR_REF_GONE",
                   "[attach] expected a live tensor ref, got ref " + std::to_string(ref.id) + " of generation " +
                       std::to_string(ref.generation) + ", which was attached or released before (a ref can be attached once)",
                   {{"id", std::to_string(ref.id)}, {"generation", std::to_string(ref.generation)}});
}

std::shared_ptr<const Loan> lend_out(Guard& origin, c10::Device device) {
  // Readers of one tensor share one loan: the origin is free when the last of them is gone.
  if (auto present = origin.lent.lock()) return present;
  if (!device.is_cpu() && !origin.departures) origin.departures = std::make_shared<Departures>();
  auto loan = std::make_shared<const Loan>(Loan{origin.borrowed, origin.departures});
  origin.lent = loan;
  return loan;
}

Guard receiver_guard(Guard& origin, RefKind kind, c10::Device device) {
  if (kind == RefKind::move) return origin;
  return Guard{true, lend_out(origin, device), {}};
}

// Wraps a loan for a reader on a device: when the reader releases it, the place of its stream is recorded as a fence.
std::shared_ptr<const Loan> read_in_stream(std::shared_ptr<const Loan> loan, c10::Device device) {
  if (!loan || !loan->departures) return loan;
  return {new Loan{std::move(loan), nullptr}, [device](const Loan* reading) {
            reading->upstream->departures->add(Fence::here(device));
            delete reading;
          }};
}

std::unordered_map<uint32_t, Entry>::iterator find(Table& refs, RefId ref) {
  const auto found = refs.entries.find(ref.id);
  if (found == refs.entries.end() || found->second.generation != ref.generation) gone(ref);
  return found;
}

}  // namespace

RefId make_ref(HandleTable& handles, Handle handle, RefKind kind, const std::string& owner) {
  const char* const op = kind == RefKind::move ? "moveRef" : "shareRef";
  const at::Tensor& tensor = kind == RefKind::share ? handles.get(handle, op) : handles.get_exclusive(handle, op);
  // Detached: the receiver gets a tensor object of its own over the same memory, without this thread's graph and flags.
  PendingRef pending{tensor.detach(), receiver_guard(handles.changeable_guard(handle), kind, tensor.device()), owner,
                     Fence::here(tensor.device())};
  if (kind == RefKind::move) handles.release(handle);
  return put_ref(std::move(pending));
}

PendingRef take_ref(RefId ref) {
  Table& refs = table();
  const std::lock_guard<std::mutex> lock(refs.mutex);
  const auto found = find(refs, ref);
  PendingRef pending = std::move(found->second.pending);
  refs.entries.erase(found);
  return pending;
}

RefId put_ref(PendingRef pending) {
  Table& refs = table();
  const std::lock_guard<std::mutex> lock(refs.mutex);
  while (refs.next_id == 0 || refs.entries.count(refs.next_id) != 0) ++refs.next_id;
  const RefId ref{refs.next_id++, refs.next_generation++};
  refs.entries.emplace(ref.id, Entry{std::move(pending), ref.generation});
  return ref;
}

Handle attach_ref(HandleTable& handles, RefId ref) {
  PendingRef pending = take_ref(ref);
  pending.ready.hold_back();
  use_in_stream(pending.tensor);
  pending.guard.borrowed = read_in_stream(std::move(pending.guard.borrowed), pending.tensor.device());
  return handles.put(std::move(pending.tensor), std::move(pending.guard));
}

bool release_ref(RefId ref) {
  Table& refs = table();
  const std::lock_guard<std::mutex> lock(refs.mutex);
  const auto found = refs.entries.find(ref.id);
  if (found == refs.entries.end() || found->second.generation != ref.generation) return false;
  refs.entries.erase(found);
  return true;
}

int64_t release_refs_of(const std::string& owner) {
  Table& refs = table();
  const std::lock_guard<std::mutex> lock(refs.mutex);
  int64_t released = 0;
  for (auto it = refs.entries.begin(); it != refs.entries.end();) {
    const bool owned = it->second.pending.owner == owner;
    it = owned ? refs.entries.erase(it) : std::next(it);
    released += owned ? 1 : 0;
  }
  return released;
}

int64_t live_refs() {
  Table& refs = table();
  const std::lock_guard<std::mutex> lock(refs.mutex);
  return static_cast<int64_t>(refs.entries.size());
}

}  // namespace troupe
