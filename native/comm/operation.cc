#include "comm/operation.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe::comm {
namespace {

constexpr const char* kKindNames[] = {"allReduce", "allGather", "reduceScatter", "broadcast", "reduce",
                                      "allToAll",  "barrier",   "send",          "recv"};
constexpr const char* kReductionNames[] = {"sum", "avg", "max", "min", "prod"};

[[noreturn]] void refuse(const Operation& operation, const std::string& expected, const std::string& got) {
  const char* const name = kKindNames[static_cast<int>(operation.kind)];
  throw CodedError("COLLECTIVE_ARGUMENT", std::string("[") + name + "] expected " + expected + ", got " + got,
                   {{"op", name}});
}

int64_t rows_of(const at::Tensor& tensor) { return tensor.dim() == 0 ? 1 : tensor.size(0); }

bool is_rooted(Kind kind) { return kind == Kind::broadcast || kind == Kind::reduce; }
bool is_pairwise(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

void check_peer(const Operation& operation, int rank, int size) {
  if (!is_rooted(operation.kind) && !is_pairwise(operation.kind)) return;
  if (operation.peer < 0 || operation.peer >= size) {
    refuse(operation, "a rank of the group (0 to " + std::to_string(size - 1) + ")", std::to_string(operation.peer));
  }
  if (is_pairwise(operation.kind) && operation.peer == rank) refuse(operation, "another rank than one's own", std::to_string(rank));
}

void check_reduction(const Operation& operation) {
  if (!operation.reduces()) return;
  const c10::ScalarType dtype = operation.input.scalar_type();
  const std::string name = kReductionNames[static_cast<int>(operation.reduction)];
  if (operation.reduction == Reduction::avg && !c10::isFloatingType(dtype)) {
    refuse(operation, "a floating dtype for avg", dtype_name(dtype));
  }
  const bool ordered = operation.reduction == Reduction::max || operation.reduction == Reduction::min;
  if (c10::isComplexType(dtype) || (dtype == c10::ScalarType::Bool && !ordered)) {
    refuse(operation, "a dtype that has a " + name, dtype_name(dtype));
  }
}

// The shape of one tensor that holds those of all ranks along dim 0.
void check_whole(const Operation& operation, const at::Tensor& whole, const at::Tensor& part, int64_t rows) {
  const bool fits = part.dim() > 0 && whole.dim() == part.dim() && rows_of(whole) == rows &&
                    whole.sizes().slice(1) == part.sizes().slice(1);
  if (!fits) {
    refuse(operation, "dim 0 of " + std::to_string(rows) + " rows and the other dims alike beside " + describe_tensor(part),
           describe_tensor(whole));
  }
}

void check_splits(const Operation& operation, const at::Tensor& tensor, const std::vector<int64_t>& splits, int size) {
  const bool positive = std::all_of(splits.begin(), splits.end(), [](int64_t rows) { return rows >= 0; });
  const int64_t sum = std::accumulate(splits.begin(), splits.end(), int64_t{0});
  if (splits.size() == static_cast<size_t>(size) && positive && sum == rows_of(tensor) && tensor.dim() > 0) return;
  refuse(operation, std::to_string(size) + " splits that add up to dim 0 of " + describe_tensor(tensor),
         std::to_string(splits.size()) + " that add up to " + std::to_string(sum));
}

void fill_splits(const Operation& operation, const at::Tensor& tensor, std::vector<int64_t>& splits, int size) {
  if (!splits.empty()) return;
  if (tensor.dim() == 0 || tensor.size(0) % size != 0) {
    refuse(operation, "a dim 0 that " + std::to_string(size) + " ranks divide, or splits", describe_tensor(tensor));
  }
  splits.assign(static_cast<size_t>(size), tensor.size(0) / size);
}

void check_shapes(Operation& operation, int size) {
  const at::Tensor &input = operation.input, &output = operation.output;
  switch (operation.kind) {
    case Kind::all_gather:
      if (operation.output_splits.empty()) return check_whole(operation, output, input, size * rows_of(input));
      return check_splits(operation, output, operation.output_splits, size);
    case Kind::reduce_scatter: return check_whole(operation, input, output, size * rows_of(output));
    case Kind::all_to_all:
      fill_splits(operation, input, operation.input_splits, size);
      fill_splits(operation, output, operation.output_splits, size);
      check_splits(operation, input, operation.input_splits, size);
      check_splits(operation, output, operation.output_splits, size);
      check_whole(operation, output, input, rows_of(output));
      if (output.is_alias_of(input)) refuse(operation, "an output apart from the input", "tensors of one memory");
      return;
    default:
      if (input.defined() && output.defined() && input.sizes() != output.sizes()) {
        refuse(operation, "an output like the input " + describe_tensor(input), describe_tensor(output));
      }
  }
}

int64_t split_of(const std::vector<int64_t>& splits, int rank) {
  return splits.empty() ? -1 : splits[static_cast<size_t>(rank)];
}

// A send and the recv it is meant for are one thing.
int32_t place_of(const Signature& signature) {
  return signature.kind == static_cast<int32_t>(Kind::recv) ? static_cast<int32_t>(Kind::send) : signature.kind;
}

}  // namespace

const char* kind_name(Kind kind) { return kKindNames[static_cast<int>(kind)]; }

void check_operation(Operation& operation, int rank, int size) {
  check_peer(operation, rank, size);
  if (operation.kind == Kind::barrier) return;
  const at::Tensor &input = operation.input, &output = operation.output;
  for (const at::Tensor& tensor : {input, output}) {
    if (tensor.defined() && tensor.dim() > Signature::kMaxDims) refuse(operation, "at most 8 dims", describe_tensor(tensor));
  }
  if (input.defined() && output.defined() &&
      (input.scalar_type() != output.scalar_type() || input.device() != output.device())) {
    refuse(operation, "an output of the dtype and device of the input " + describe_tensor(input), describe_tensor(output));
  }
  check_reduction(operation);
  check_shapes(operation, size);
}

Signature signature_of(const Operation& operation, int64_t sequence, int rank, int other) {
  Signature signature;
  signature.sequence = sequence;
  signature.kind = static_cast<int32_t>(operation.kind);
  if (operation.reduces()) signature.reduction = static_cast<int32_t>(operation.reduction);
  if (is_rooted(operation.kind)) signature.peer = operation.peer;
  const at::Tensor& tensor = operation.kind == Kind::recv ? operation.output : operation.input;
  if (!tensor.defined()) return signature;
  signature.dtype = static_cast<int32_t>(tensor.scalar_type());
  signature.ndim = static_cast<int32_t>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), signature.dims);
  signature.ragged = operation.output_splits.empty() ? 0 : 1;
  signature.rows_from = split_of(operation.output_splits, other);
  // Ragged gathers send all rows to everyone.
  signature.rows_to = operation.kind == Kind::all_gather ? split_of(operation.output_splits, rank)
                                                         : split_of(operation.input_splits, other);
  return signature;
}

bool agree(const Signature& mine, const Signature& theirs) {
  if (mine.sequence != theirs.sequence || place_of(mine) != place_of(theirs) || mine.dtype != theirs.dtype ||
      mine.reduction != theirs.reduction || mine.peer != theirs.peer || mine.ndim != theirs.ndim ||
      mine.ragged != theirs.ragged || mine.rows_to != theirs.rows_from || mine.rows_from != theirs.rows_to) {
    return false;
  }
  const int first = mine.ragged;
  return mine.ndim <= first || std::equal(mine.dims + first, mine.dims + mine.ndim, theirs.dims + first);
}

std::string describe(const Signature& signature) {
  std::ostringstream text;
  text << '#' << signature.sequence << ' ' << kKindNames[signature.kind] << '(';
  if (signature.ndim >= 0) {
    text << dtype_name(static_cast<c10::ScalarType>(signature.dtype)) << '[';
    for (int dim = 0; dim < signature.ndim; dim++) text << (dim > 0 ? "," : "") << signature.dims[dim];
    text << ']';
  }
  if (signature.reduction >= 0) text << ", " << kReductionNames[signature.reduction];
  if (signature.peer >= 0) text << ", root " << signature.peer;
  if (signature.rows_to >= 0) text << ", " << signature.rows_to << " rows out, " << signature.rows_from << " in";
  text << ')';
  return text.str();
}

std::string describe_mismatch(const std::string& group, const std::vector<int>& ranks,
                              const std::vector<Signature>& signatures) {
  std::string text = "[collective " + group + "] expected the same operation on every rank, got";
  for (size_t i = 0; i < ranks.size(); i++) {
    text += (i > 0 ? "; rank " : " rank ") + std::to_string(ranks[i]) + " ";
    text += signatures[i].kind == Signature::kAbsent ? "nothing yet" : describe(signatures[i]);
  }
  return text + " (issue the same operations in the same order on every rank)";
}

std::string join(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace troupe::comm
