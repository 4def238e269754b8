#include "comm/tensor_collectives.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <numeric>
#include <utility>

namespace troupe::comm {
namespace {

// An output for `size` times (or one size-th of) the rows of dim 0.
at::Tensor rows_like(const at::Tensor& x, int64_t rows) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, x.options());
}

void run(Communicator& member, Kind kind, const at::Tensor& output, const at::Tensor& input, Reduction reduction = Reduction::sum,
         int peer = 0) {
  Operation operation;
  operation.kind = kind;
  operation.output = output;
  operation.input = input;
  operation.reduction = reduction;
  operation.peer = peer;
  member.run(std::move(operation));
}

int64_t share_of(const Communicator& member, const at::Tensor& x, int64_t dim, const char* op) {
  TORCH_CHECK(x.size(dim) % member.size() == 0, "[", op, "] expected dim ", dim, " of ", x.sizes(), " to be divided by ",
              member.size(), " ranks, got ", x.size(dim));
  return x.size(dim) / member.size();
}

}  // namespace

int64_t wrapped(const at::Tensor& x, int64_t dim, const char* op) {
  TORCH_CHECK(x.dim() > 0 && dim >= -x.dim() && dim < x.dim(), "[", op, "] expected a dim of x ", x.sizes(), ", got ", dim);
  return dim < 0 ? dim + x.dim() : dim;
}

at::Tensor all_reduced(Communicator& member, const at::Tensor& x, Reduction reduction) {
  const at::Tensor y = at::empty(x.sizes(), x.options());
  run(member, Kind::all_reduce, y, x, reduction);
  return y;
}

at::Tensor stacked(Communicator& member, const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.insert(shape.begin(), 1);
  const at::Tensor row = x.contiguous().view(shape);
  const at::Tensor whole = rows_like(row, member.size());
  run(member, Kind::all_gather, whole, row);
  return whole;
}

at::Tensor joined(Communicator& member, const at::Tensor& x, int64_t dim) {
  if (dim != 0) return at::cat(stacked(member, x).unbind(0), dim);
  const at::Tensor whole = rows_like(x, x.size(0) * member.size());
  run(member, Kind::all_gather, whole, x);
  return whole;
}

at::Tensor own_slice(const Communicator& member, const at::Tensor& x, int64_t dim, const char* op) {
  const int64_t share = share_of(member, x, dim, op);
  return x.narrow(dim, share * member.rank(), share).clone(at::MemoryFormat::Contiguous);
}

at::Tensor reduced_slice(Communicator& member, const at::Tensor& x, int64_t dim, Reduction reduction, const char* op) {
  share_of(member, x, dim, op);
  const at::Tensor rows = dim == 0 ? x : at::cat(x.chunk(member.size(), dim), 0);
  const at::Tensor slice = rows_like(rows, rows.size(0) / member.size());
  run(member, Kind::reduce_scatter, slice, rows, reduction);
  return slice;
}

at::Tensor broadcasted(Communicator& member, const at::Tensor& x, int root) {
  const at::Tensor y = x.clone(at::MemoryFormat::Contiguous);
  run(member, Kind::broadcast, y, y, Reduction::sum, root);
  return y;
}

at::Tensor summed_at(Communicator& member, const at::Tensor& x, int root) {
  const at::Tensor y = x.clone(at::MemoryFormat::Contiguous);
  run(member, Kind::reduce, y, y, Reduction::sum, root);
  return member.rank() == root ? y : y.zero_();
}

at::Tensor exchanged(Communicator& member, const at::Tensor& x, const std::vector<int64_t>& output_splits,
                     const std::vector<int64_t>& input_splits, const char* op) {
  Operation operation;
  operation.kind = Kind::all_to_all;
  TORCH_CHECK(x.dim() > 0, "[", op, "] expected a tensor with a dim 0, got one of no dims");
  const int64_t rows = output_splits.empty() ? x.size(0) : std::accumulate(output_splits.begin(), output_splits.end(), int64_t{0});
  const at::Tensor y = rows_like(x, rows);
  operation.output = y;
  operation.input = x;
  operation.output_splits = output_splits;
  operation.input_splits = input_splits;
  member.run(std::move(operation));
  return y;
}

}  // namespace troupe::comm
