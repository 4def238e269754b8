#include "comm/round.h"

#include <ATen/ops/empty.h>

#include "comm/rank_order.h"

namespace troupe::comm {
namespace {

at::Tensor flat(const at::Tensor& tensor) { return tensor.view(-1); }

class Round {
 public:
  Round(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation)
      : identity_(setting.identity), ranks_(ranks), operation_(operation), wire_(setting, ranks, sequence, operation) {}

  void run() {
    switch (operation_.kind) {
      case Kind::barrier: return wire_.trade(trades());
      case Kind::all_reduce: return all_reduce();
      case Kind::reduce_scatter: return reduce_scatter();
      case Kind::reduce: return reduce();
      case Kind::all_gather: return all_gather();
      case Kind::all_to_all: return all_to_all();
      case Kind::broadcast: return broadcast();
      case Kind::send: return wire_.trade({{operation_.peer, operation_.input, {}}});
      case Kind::recv: return wire_.trade({{operation_.peer, {}, operation_.output}});
    }
  }

 private:
  int rank() const { return identity_.rank; }
  int size() const { return identity_.size; }

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
    wire_.trade(all);
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
    wire_.trade(all);
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
    wire_.trade(all);
  }

  void reduce() {
    std::vector<Trade> all = trades();
    const at::Tensor input = flat(operation_.input);
    if (rank() == operation_.peer) return reduce_here(all, input, flat(operation_.output));
    for (Trade& with : all) {
      if (with.peer == operation_.peer) with.outgoing = input;
    }
    wire_.trade(all);
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
    wire_.trade_results(all);
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
    wire_.trade(all);
    reduce_tensors(operation_.reduction, sources, result);
  }

  const Communicator::Identity& identity_;
  const std::vector<int>& ranks_;
  const Operation& operation_;
  Wire wire_;
};

}  // namespace

void run_round(const RoundSetting& setting, const std::vector<int>& ranks, int64_t sequence, const Operation& operation) {
  setting.failure.throw_if_any();
  Round(setting, ranks, sequence, operation).run();
}

}  // namespace troupe::comm
