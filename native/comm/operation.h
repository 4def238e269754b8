// One rank's part in one collective, as data: what every backend checks and carries out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::comm {

// Numbers that src/compute/collectives/communicator.ts knows too.
enum class Kind : int32_t { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, barrier, send, recv };

// Numbers that src/compute/collectives/reduce-op.ts knows too.
enum class Reduction : int32_t { sum, avg, max, min, prod };

// `input` is read, `output` written; they may be one tensor, save in all_to_all. A barrier has neither, a send only `input`, a
// recv only `output`. Once checked, both are contiguous.
struct Operation {
  Kind kind = Kind::barrier;
  at::Tensor output;
  at::Tensor input;
  Reduction reduction = Reduction::sum;
  int peer = 0;  // root of broadcast and reduce, the other end of send and recv
  // Rows of dim 0 from and to each rank. all_to_all: empty where even. all_gather: rows of each rank, empty where all alike.
  std::vector<int64_t> output_splits;
  std::vector<int64_t> input_splits;

  bool is_meta() const { return (input.defined() && input.is_meta()) || (output.defined() && output.is_meta()); }
  // The device of its tensors; the host for a barrier.
  c10::Device device() const {
    if (input.defined()) return input.device();
    return output.defined() ? output.device() : c10::Device(c10::DeviceType::CPU);
  }
  // The same operation on the same memory without autograd's graph, so that the thread that drops it does not destroy the graph.
  Operation without_graph() && {
    const bool in_place = output.defined() && output.is_same(input);
    if (output.defined()) output = output.detach();
    if (input.defined()) input = in_place ? output : input.detach();
    return std::move(*this);
  }
  // Whether ranks' elements become one.
  bool reduces() const {
    return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
  }
};

// Fills in even splits and refuses what no group of `size` ranks could carry out: CodedError COLLECTIVE_ARGUMENT.
void check_operation(Operation& operation, int rank, int size);

// The properties of an operation that must agree on all ranks; sent ahead of the bytes. Plain data.
struct Signature {
  static constexpr int kMaxDims = 8;
  static constexpr int32_t kAbsent = -1;  // as kind: this rank has not come

  int64_t sequence = 0;
  int32_t kind = 0;
  int32_t dtype = -1;
  int32_t reduction = -1;
  int32_t peer = -1;
  int32_t ndim = -1;      // of the tensor described: the output of a reduce_scatter, the input of others; -1: none
  int32_t ragged = 0;     // 1: dim 0 is not compared
  int64_t dims[kMaxDims] = {};
  int64_t rows_to = -1;   // rows for the receiver of this signature, -1 where they are not counted
  int64_t rows_from = -1; // rows expected of it
};

// `other`: the rank that will read it.
Signature signature_of(const Operation& operation, int64_t sequence, int rank, int other);

// Whether two ranks mean the same place in the program; `mine` was written for `theirs`' rank and the reverse.
bool agree(const Signature& mine, const Signature& theirs);

// "#7 allReduce(float32[2,3], sum)".
std::string describe(const Signature& signature);

// The text of COLLECTIVE_MISMATCH: what each of `ranks` called.
std::string describe_mismatch(const std::string& group, const std::vector<int>& ranks,
                              const std::vector<Signature>& signatures);
// "1, 3" and so on.
std::string join(const std::vector<int>& ranks);
// "allReduce".
const char* kind_name(Kind kind);

}  // namespace troupe::comm
