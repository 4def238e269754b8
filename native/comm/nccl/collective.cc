#include "comm/nccl/collective.h"

#if HAVE_GLOO

#include <ATen/ops/empty.h>

#include "comm/rank_order.h"
#include "core/device/device.h"

namespace troupe::comm::nccl {
namespace {

// Smaller tensors are sent to all ranks completely, and each rank reduces them.
constexpr size_t kSmallBytes = 32 * 1024;

at::Tensor flat(const at::Tensor& tensor) { return tensor.view(-1); }

// NCCL's name of a dtype, where it has one to reduce.
bool find_dtype(c10::ScalarType dtype, DataType& found) {
  switch (dtype) {
    case at::kFloat: found = float32; return true;
    case at::kBFloat16: found = bfloat16; return true;
    case at::kHalf: found = float16; return true;
    case at::kDouble: found = float64; return true;
    case at::kInt: found = int32; return true;
    case at::kLong: found = int64; return true;
    case at::kChar: found = int8; return true;
    case at::kByte: found = uint8; return true;
    default: return false;
  }
}

ReduceOp op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return sum;
    case Reduction::avg: return avg;
    case Reduction::max: return max;
    case Reduction::min: return min;
    case Reduction::prod: return prod;
  }
  return sum;
}

// One collective as its rank gives it to a channel.
class Collective {
 public:
  Collective(const Communicator::Identity& identity, const Operation& operation, Channel& channel)
      : identity_(identity), operation_(operation), channel_(channel) {}

  void issue() const {
    // Its flight holds both until it is over; where it fails, they are let go of before NCCL's kernels have ended.
    use_in_stream(operation_.input);
    use_in_stream(operation_.output);
    switch (operation_.kind) {
      case Kind::all_reduce: return all_reduce();
      case Kind::reduce_scatter: return reduce_scatter();
      case Kind::reduce: return reduce();
      case Kind::all_gather: return all_gather();
      case Kind::all_to_all: return all_to_all();
      case Kind::broadcast: return broadcast();
      case Kind::barrier:
      case Kind::send:
      case Kind::recv: return;
    }
  }

 private:
  int rank() const { return identity_.rank; }
  int size() const { return identity_.size; }
  bool is_direct(DataType& dtype) const { return identity_.direct && find_dtype(operation_.input.scalar_type(), dtype); }

  void all_reduce() const {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    if (input.numel() == 0) return;
    if (DataType dtype; is_direct(dtype)) {
      return channel_.together([&](Comm comm, void* stream) {
        check(library().all_reduce(input.data_ptr(), output.data_ptr(), static_cast<size_t>(input.numel()), dtype,
                                   op_of(operation_.reduction), comm, stream), "ncclAllReduce");
      });
    }
    if (input.nbytes() <= kSmallBytes) {
      const at::Tensor all = at::empty({size(), input.numel()}, input.options());
      gather_even(input, all);
      return reduce_tensors(operation_.reduction, all.unbind(0), output);
    }
    const auto slice = [&](const at::Tensor& whole, int peer) {
      const int64_t begin = whole.numel() * peer / size(), end = whole.numel() * (peer + 1) / size();
      return whole.narrow(0, begin, end - begin);
    };
    const at::Tensor own = slice(output, rank());
    reduce_here([&](int peer) { return slice(input, peer); }, own);
    channel_.together([&](Comm comm, void* stream) {
      for_others([&](int peer) {
        recv(slice(output, peer), peer, comm, stream);
        send(own, peer, comm, stream);
      });
    });
  }

  void reduce_scatter() const {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    if (output.numel() == 0) return;
    if (DataType dtype; is_direct(dtype)) {
      return channel_.together([&](Comm comm, void* stream) {
        check(library().reduce_scatter(input.data_ptr(), output.data_ptr(), static_cast<size_t>(output.numel()), dtype,
                                       op_of(operation_.reduction), comm, stream), "ncclReduceScatter");
      });
    }
    reduce_here([&](int peer) { return input.narrow(0, peer * output.numel(), output.numel()); }, output);
  }

  void reduce() const {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    if (input.numel() == 0) return;
    const int root = operation_.peer;
    if (DataType dtype; is_direct(dtype)) {
      return channel_.together([&](Comm comm, void* stream) {
        check(library().reduce(input.data_ptr(), output.data_ptr(), static_cast<size_t>(input.numel()), dtype,
                               op_of(operation_.reduction), root, comm, stream), "ncclReduce");
      });
    }
    if (rank() != root) return channel_.together([&](Comm comm, void* stream) { send(input, root, comm, stream); });
    std::vector<at::Tensor> sources = like(input);
    channel_.together([&](Comm comm, void* stream) {
      for_others([&](int peer) { recv(sources[static_cast<size_t>(peer)], peer, comm, stream); });
    });
    reduce_tensors(operation_.reduction, sources, output);
  }

  void all_gather() const {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    if (operation_.output_splits.empty()) return gather_even(input, output);
    const int64_t rows = operation_.output.size(0);
    const int64_t row = rows == 0 ? 0 : output.numel() / rows;
    std::vector<at::Tensor> slots;
    int64_t begin = 0;
    for (const int64_t split : operation_.output_splits) {
      slots.push_back(output.narrow(0, begin, split * row));
      begin += split * row;
    }
    const at::Tensor& own = slots[static_cast<size_t>(rank())];
    if (own.data_ptr() != input.data_ptr()) own.copy_(input);
    channel_.together([&](Comm comm, void* stream) {
      for_others([&](int peer) {
        recv(slots[static_cast<size_t>(peer)], peer, comm, stream);
        send(input, peer, comm, stream);
      });
    });
  }

  void gather_even(const at::Tensor& input, const at::Tensor& all) const {
    if (input.numel() == 0) return;
    channel_.together([&](Comm comm, void* stream) {
      check(library().all_gather(input.data_ptr(), all.data_ptr(), input.nbytes(), int8, comm, stream), "ncclAllGather");
    });
  }

  void all_to_all() const {
    const at::Tensor input = flat(operation_.input), output = flat(operation_.output);
    const auto row_of = [](const at::Tensor& tensor) { return tensor.size(0) == 0 ? 0 : tensor.numel() / tensor.size(0); };
    const int64_t row = row_of(operation_.input), output_row = row_of(operation_.output);
    std::vector<std::pair<at::Tensor, at::Tensor>> trades;
    int64_t from = 0, to = 0;
    for (int peer = 0; peer < size(); peer++) {
      const int64_t sent = operation_.input_splits[static_cast<size_t>(peer)] * row;
      const int64_t taken = operation_.output_splits[static_cast<size_t>(peer)] * output_row;
      trades.emplace_back(input.narrow(0, from, sent), output.narrow(0, to, taken));
      from += sent;
      to += taken;
    }
    const auto& [kept, own] = trades[static_cast<size_t>(rank())];
    own.copy_(kept);
    channel_.together([&](Comm comm, void* stream) {
      for_others([&](int peer) {
        const auto& [outgoing, incoming] = trades[static_cast<size_t>(peer)];
        recv(incoming, peer, comm, stream);
        send(outgoing, peer, comm, stream);
      });
    });
  }

  void broadcast() const {
    const at::Tensor &input = operation_.input, &output = operation_.output;
    if (input.numel() == 0) return;
    channel_.together([&](Comm comm, void* stream) {
      check(library().broadcast(input.data_ptr(), output.data_ptr(), input.nbytes(), int8, operation_.peer, comm, stream),
            "ncclBroadcast");
    });
  }

  // A tensor for each rank's part, one's own in its place.
  std::vector<at::Tensor> like(const at::Tensor& own) const {
    std::vector<at::Tensor> sources;
    for (int peer = 0; peer < size(); peer++) sources.push_back(peer == rank() ? own : at::empty(own.sizes(), own.options()));
    return sources;
  }

  // Sends every rank its slice and reduces one's own, of all ranks, in rank order.
  template <class Slice>
  void reduce_here(const Slice& slice, const at::Tensor& result) const {
    std::vector<at::Tensor> sources = like(slice(rank()));
    channel_.together([&](Comm comm, void* stream) {
      for_others([&](int peer) {
        recv(sources[static_cast<size_t>(peer)], peer, comm, stream);
        send(slice(peer), peer, comm, stream);
      });
    });
    reduce_tensors(operation_.reduction, sources, result);
  }

  template <class Body>
  void for_others(const Body& body) const {
    for (int peer = 0; peer < size(); peer++) {
      if (peer != rank()) body(peer);
    }
  }

  const Communicator::Identity& identity_;
  const Operation& operation_;
  Channel& channel_;
};

}  // namespace

void send(const at::Tensor& memory, int peer, Comm comm, void* stream) {
  if (memory.nbytes() > 0) check(library().send(memory.data_ptr(), memory.nbytes(), int8, peer, comm, stream), "ncclSend");
}

void recv(const at::Tensor& memory, int peer, Comm comm, void* stream) {
  if (memory.nbytes() > 0) check(library().recv(memory.data_ptr(), memory.nbytes(), int8, peer, comm, stream), "ncclRecv");
}

void issue_collective(const Communicator::Identity& identity, const Operation& operation, Channel& channel) {
  Collective(identity, operation, channel).issue();
}

}  // namespace troupe::comm::nccl

#endif
