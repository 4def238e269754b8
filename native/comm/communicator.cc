#include "comm/communicator.h"

#include <ATen/ops/empty.h>

#include <numeric>
#include <thread>
#include <unordered_map>

#include "comm/backends.h"
#include "core/dispatch/describe.h"
#include "core/device/device.h"
#include "core/autograd/differentiable.h"
#include "core/error.h"
#include "core/dispatch/meter.h"

namespace troupe::comm {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<Communicator>> members;
  int64_t next = 1;
};

// Never freed: threads may end after the library's own statics.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

void check_identity(const Communicator::Identity& identity) {
  if (identity.size >= 1 && identity.rank >= 0 && identity.rank < identity.size && identity.deadline_ms > 0 &&
      identity.delay_ms >= 0 && !identity.name.empty()) {
    return;
  }
  throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator] expected a name, 0 <= rank < size and a positive deadline, got \"" +
                                              identity.name + "\", rank " + std::to_string(identity.rank) + " of " +
                                              std::to_string(identity.size) + ", " +
                                              std::to_string(identity.deadline_ms) + " ms");
}

void check_rendezvous(const Communicator::Identity& identity) {
  if (identity.backend != "local" || identity.rendezvous.empty()) return;
  throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator] expected no rendezvous for local, whose ranks share a process, got " +
                                              identity.rendezvous);
}

std::shared_ptr<Communicator> make_communicator(Communicator::Identity identity, const Look& look) {
  const std::string backend = identity.backend;
  if (backend == "local") return make_local(std::move(identity));
  if (backend == "gloo") return make_gloo(std::move(identity), look);
  if (backend == "nccl") return make_nccl(std::move(identity), look);
  throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator] expected one of the backends local, gloo and nccl, got " + backend);
}

// The address of a rank's part within the complete tensor, for operations where the part may lie in it.
const char* slot(const at::Tensor& whole, const at::Tensor& part, int rank) {
  return static_cast<const char*>(whole.data_ptr()) + rank * static_cast<int64_t>(part.nbytes());
}

at::Tensor to_host_if(bool staged, const at::Tensor& tensor) {
  if (!staged) return tensor;
  count_read_back();
  return tensor.to(at::kCPU);
}

// Whether writing `output` while others still read `input` would spoil it.
bool must_copy_input(const Operation& operation, int rank) {
  const at::Tensor &input = operation.input, &output = operation.output;
  if (!input.defined() || !output.defined() || !input.is_alias_of(output)) return false;
  switch (operation.kind) {
    case Kind::all_gather: return !operation.output_splits.empty() || input.data_ptr() != slot(output, input, rank);
    case Kind::reduce_scatter: return output.data_ptr() != slot(input, output, rank);
    default: return input.data_ptr() != output.data_ptr();
  }
}

}  // namespace

void Work::when_done(std::function<void()>) {
  throw CodedError("COLLECTIVE_ARGUMENT", "[awaitWork] expected work of a group of gloo or nccl, got that of a group whose "
                                          "ranks carry it out while they wait (use wait)");
}

void Work::wait() {
  if (done()) {
    block();
  } else {
    tell(true);
    try {
      block();
    } catch (...) {
      tell(false);
      throw;
    }
    tell(false);
  }
  std::this_thread::sleep_until(not_before_);
  if (!strided_.defined()) return;
  without_recording([&] { strided_.copy_(contiguous_); });
  strided_ = contiguous_ = at::Tensor();
}

namespace {

// Counts the bytes that the operation would have sent round the group.
void meter(const Operation& operation) {
  const auto bytes = [](const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; };
  count_rings(operation.kind == Kind::all_reduce ? 2 : 1, std::max(bytes(operation.input), bytes(operation.output)));
}

}  // namespace

WorkPointer Communicator::begin(Operation operation, bool waited_for_at_once) {
  check_operation(operation, rank(), size());
  if (operation.is_meta()) {
    meter(operation);
    return nullptr;
  }
  return without_recording([&] {
    const Kind kind = operation.kind;
    const at::Tensor output = operation.output;
    const bool in_place = output.defined() && operation.input.is_same(output);
    const bool staged = !operation.device().is_cpu() && !carries_devices();
    if (output.defined()) {
      output.unsafeGetTensorImpl()->bump_version();
      if (!output.is_contiguous() || staged) {
        const auto options = output.options().device(staged ? at::kCPU : output.device());
        operation.output = in_place ? to_host_if(staged, output.contiguous()) : at::empty(output.sizes(), options);
      }
    }
    if (in_place) {
      operation.input = operation.output;
    } else if (operation.input.defined()) {
      operation.input = to_host_if(staged, operation.input.contiguous());
      if (must_copy_input(operation, rank())) operation.input = operation.input.clone();
    }
    const at::Tensor contiguous = operation.output;
    WorkPointer work = start(std::move(operation), waited_for_at_once);
    work->kind_ = kind;
    work->status_slot_ = identity_.status_slot;
    work->tell(false);
    if (contiguous.defined() && !contiguous.is_same(output)) {
      work->strided_ = output;
      work->contiguous_ = contiguous;
    }
    if (identity_.delay_ms > 0) delay(*work);
    return work;
  });
}

void Communicator::delay(Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(identity_.delay_ms));
  link_free_ = std::max(link_free_, Clock::now()) + time;
  work.not_before_ = link_free_;
}

namespace {

Failure aborted(const std::string& group, const std::string& reason) {
  return {"COLLECTIVE_ABORTED", "[collective " + group + "] every rank to live was expected: " + reason};
}

}  // namespace

void Communicator::abort(const std::string& reason) {
  fail(aborted(identity_.name, reason));
  end_waits();
}

void Communicator::run(Operation operation) {
  if (const WorkPointer work = begin(std::move(operation), true)) work->wait();
}

std::vector<at::Tensor> Communicator::gather_ragged(const at::Tensor& input) {
  if (input.dim() == 0 || input.is_meta()) {
    throw CodedError("COLLECTIVE_ARGUMENT", "[gatherRagged] expected a tensor with a dim 0 and with memory, got " +
                                                describe_tensor(input));
  }
  at::Tensor rows = at::empty({size()}, at::kLong);
  at::Tensor own = rows.narrow(0, rank(), 1);
  *own.data_ptr<int64_t>() = input.size(0);
  Operation exchange;
  exchange.kind = Kind::all_gather;
  exchange.output = rows;
  exchange.input = own;
  run(std::move(exchange));
  Operation gather;
  gather.kind = Kind::all_gather;
  gather.output_splits.assign(rows.data_ptr<int64_t>(), rows.data_ptr<int64_t>() + size());
  std::vector<int64_t> shape = input.sizes().vec();
  shape[0] = std::accumulate(gather.output_splits.begin(), gather.output_splits.end(), int64_t{0});
  const at::Tensor whole = at::empty(shape, input.options());
  const std::vector<int64_t> splits = gather.output_splits;
  gather.output = whole;
  gather.input = input.detach();
  run(std::move(gather));
  return without_recording([&] { return whole.split_with_sizes(splits); });
}

int64_t open_communicator(Communicator::Identity identity, const Look& look) {
  check_identity(identity);
  check_rendezvous(identity);
  std::shared_ptr<Communicator> member = make_communicator(std::move(identity), look);
  Table& members = table();
  const std::lock_guard<std::mutex> lock(members.mutex);
  members.members.emplace(members.next, std::move(member));
  return members.next++;
}

std::shared_ptr<Communicator> communicator(int64_t number) {
  Table& members = table();
  const std::lock_guard<std::mutex> lock(members.mutex);
  const auto found = members.members.find(number);
  if (found != members.members.end()) return found->second;
  throw CodedError("COLLECTIVE_ARGUMENT", "[communicator] expected an open communicator, got number " + std::to_string(number) +
                                              ", which is closed (open the rebuilt group again)");
}

bool close_communicator(int64_t number) {
  std::shared_ptr<Communicator> leaving;
  Table& members = table();
  {
    const std::lock_guard<std::mutex> lock(members.mutex);
    const auto found = members.members.find(number);
    if (found == members.members.end()) return false;
    leaving = std::move(found->second);
    members.members.erase(found);
  }
  leaving->leave();
  return true;
}

int64_t abort_group(const std::string& name, const std::string& reason) {
  std::vector<std::shared_ptr<Communicator>> ended;
  {
    Table& members = table();
    const std::lock_guard<std::mutex> lock(members.mutex);
    for (const auto& [number, member] : members.members) {
      if (member->identity().name == name) ended.push_back(member);
    }
  }
  // All members fail with the reason before any of them leaves.
  for (const auto& member : ended) member->fail(aborted(name, reason));
  for (const auto& member : ended) member->end_waits();
  return static_cast<int64_t>(ended.size());
}

}  // namespace troupe::comm
