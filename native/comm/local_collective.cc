#include "comm/local_collective.h"

#include <algorithm>
#include <cstring>

#include "comm/device_round.h"
#include "comm/rank_order.h"

namespace troupe::comm {
namespace {

char* at_byte(const at::Tensor& tensor, int64_t offset_bytes) {
  return static_cast<char*>(tensor.data_ptr()) + offset_bytes;
}

}  // namespace

LocalCollective::LocalCollective(int64_t sequence, const std::vector<int>& ranks)
    : sequence(sequence), ranks(ranks), parts(ranks.size()), signatures(ranks.size()), arrivals(ranks.size()) {
  for (Signature& signature : signatures) signature.kind = Signature::kAbsent;
}

std::vector<int> LocalCollective::missing() const {
  std::vector<int> absent;
  for (size_t i = 0; i < ranks.size(); i++) {
    if (signatures[i].kind == Signature::kAbsent) absent.push_back(ranks[i]);
  }
  return absent;
}

void LocalCollective::plan() {
  num_chunks_ = 1;  // a barrier too is finished by one of the threads
  const Operation& part = parts[0];
  if (part.kind == Kind::barrier) return;
  const at::Tensor& tensor = part.input.defined() ? part.input : part.output;
  device_ = tensor.device();
  // A device divides its own work: the last thread to post issues all of it.
  if (is_on_device()) return;
  num_chunks_ = 0;
  dtype_ = tensor.scalar_type();
  item_bytes_ = static_cast<int64_t>(tensor.element_size());
  chunk_numel_ = kChunkBytes / item_bytes_;
  reduction_ = part.reduction;
  switch (part.kind) {
    case Kind::barrier: break;
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::reduce_scatter: plan_reduction(); break;
    case Kind::all_gather: plan_gather(); break;
    case Kind::all_to_all: plan_all_to_all(); break;
    case Kind::broadcast: {
      const at::Tensor& source = parts[static_cast<size_t>(part.peer)].input;
      std::vector<void*> destinations;
      for (const Operation& other : parts) destinations.push_back(other.output.data_ptr());
      add_move({source.data_ptr()}, std::move(destinations), source.numel());
      break;
    }
    case Kind::send:
    case Kind::recv: add_move({parts[0].input.data_ptr()}, {parts[1].output.data_ptr()}, parts[0].input.numel()); break;
  }
  num_chunks_ = std::max<int64_t>(num_chunks_, 1);
}

void LocalCollective::plan_reduction() {
  const Kind kind = parts[0].kind;
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (const Operation& part : parts) sources.push_back(part.input.data_ptr());
  if (kind == Kind::reduce) {
    destinations.push_back(parts[static_cast<size_t>(parts[0].peer)].output.data_ptr());
  } else if (kind == Kind::all_reduce) {
    for (const Operation& part : parts) destinations.push_back(part.output.data_ptr());
  }
  if (kind != Kind::reduce_scatter) return add_move(std::move(sources), std::move(destinations), parts[0].input.numel());
  const int64_t numel = parts[0].output.numel();
  for (size_t rank = 0; rank < parts.size(); rank++) {
    std::vector<const void*> slices;
    for (const Operation& part : parts) slices.push_back(at_byte(part.input, static_cast<int64_t>(rank) * numel * item_bytes_));
    add_move(std::move(slices), {parts[rank].output.data_ptr()}, numel);
  }
}

void LocalCollective::plan_gather() {
  int64_t offset_bytes = 0;
  for (const Operation& from : parts) {
    std::vector<void*> destinations;
    for (const Operation& to : parts) destinations.push_back(at_byte(to.output, offset_bytes));
    add_move({from.input.data_ptr()}, std::move(destinations), from.input.numel());
    offset_bytes += static_cast<int64_t>(from.input.nbytes());
  }
}

void LocalCollective::plan_all_to_all() {
  std::vector<int64_t> to_offset(parts.size(), 0);
  for (size_t from = 0; from < parts.size(); from++) {
    const at::Tensor& input = parts[from].input;
    const int64_t row_numel = input.size(0) == 0 ? 0 : input.numel() / input.size(0);
    int64_t from_offset = 0;
    for (size_t to = 0; to < parts.size(); to++) {
      const int64_t numel = parts[from].input_splits[to] * row_numel;
      add_move({at_byte(input, from_offset * item_bytes_)}, {at_byte(parts[to].output, to_offset[to] * item_bytes_)}, numel);
      from_offset += numel;
      to_offset[to] += numel;
    }
  }
}

void LocalCollective::add_move(std::vector<const void*> sources, std::vector<void*> destinations, int64_t numel) {
  if (sources.size() == 1) {
    const auto in_place = [&](const void* to) { return to == sources[0]; };
    destinations.erase(std::remove_if(destinations.begin(), destinations.end(), in_place), destinations.end());
  }
  if (numel == 0 || destinations.empty()) return;
  work_bytes_ += numel * item_bytes_ * static_cast<int64_t>(sources.size() + destinations.size());
  moves_.push_back({std::move(sources), std::move(destinations), numel, num_chunks_});
  num_chunks_ += (numel + chunk_numel_ - 1) / chunk_numel_;
}

bool LocalCollective::help() {
  bool was_last = false;
  for (int64_t chunk; (chunk = next_chunk_.fetch_add(1)) < num_chunks_;) {
    carry_out(chunk);
    was_last = finished_chunks_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_chunks_;
  }
  return was_last;
}

void LocalCollective::carry_out(int64_t chunk) {
  if (is_on_device()) return carry_out_on_device();
  if (moves_.empty()) return;
  const auto after = std::upper_bound(moves_.begin(), moves_.end(), chunk,
                                      [](int64_t number, const Move& move) { return number < move.first_chunk; });
  const Move& move = *(after - 1);
  const int64_t begin = (chunk - move.first_chunk) * chunk_numel_;
  const int64_t numel = std::min(chunk_numel_, move.numel - begin);
  const int64_t offset_bytes = begin * item_bytes_;
  if (move.sources.size() == 1) {
    const char* const from = static_cast<const char*>(move.sources[0]) + offset_bytes;
    for (void* to : move.destinations) {
      std::memcpy(static_cast<char*>(to) + offset_bytes, from, static_cast<size_t>(numel * item_bytes_));
    }
    return;
  }
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (const void* from : move.sources) sources.push_back(static_cast<const char*>(from) + offset_bytes);
  for (void* to : move.destinations) destinations.push_back(static_cast<char*>(to) + offset_bytes);
  reduce_in_rank_order(dtype_, reduction_, sources, destinations, numel);
}

void LocalCollective::carry_out_on_device() {
  for (const Fence& arrival : arrivals) arrival.hold_back();
  for (const Operation& part : parts) {
    use_in_stream(part.input);
    use_in_stream(part.output);
  }
  run_on_device(parts);
  for (const Operation& part : parts) results_.push_back(Fence::here(part.device()));
}

void LocalCollective::release() {
  for (Operation& part : parts) part = Operation{};
}

}  // namespace troupe::comm
