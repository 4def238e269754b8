// Matrix products of a layer that is split over ranks while the sequence is split outside it: what is gathered before the
// product, or scattered behind it, moves in chunks while other chunks are multiplied. BMTrain's parallel_linear_func has
// the idea; here the sequence is any dim, and chunks never change a gradient's sum.
//
//   gather_matmul: y = join_j(x_j) W           x_j [.., s, .., in] of rank j, y [.., R s, .., out]
//   matmul_reduce_scatter: y_j = sum (x W) at j's share of dim, of all ranks; x [.., R s, .., in], y_j [.., s, .., out]
//
// The rows of dim are R ranks x C chunks x n rows; chunk c is rows n c .. n (c + 1) of every rank's share.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/autograd/differentiable.h"

namespace troupe::comm {
namespace {

using Member = std::shared_ptr<Communicator>;

// A collective under way and its result.
struct Moving {
  at::Tensor result;
  WorkPointer work;

  const at::Tensor& arrived() const {
    if (work) work->wait();
    return result;
  }
};

Moving start(Communicator& member, Kind kind, at::Tensor output, at::Tensor input) {
  Operation operation;
  operation.kind = kind;
  operation.output = output;
  operation.input = std::move(input);
  return {std::move(output), member.issue(std::move(operation))};
}

// [...] -> [R, ...] of all ranks.
Moving start_gather(Communicator& member, const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.insert(shape.begin(), 1);
  const at::Tensor row = x.contiguous().view(shape);
  shape[0] = member.size();
  return start(member, Kind::all_gather, at::empty(shape, x.options()), row);
}

// [R, ...] -> [...]: the own share of all ranks' sum.
Moving start_scatter(Communicator& member, const at::Tensor& parts) {
  std::vector<int64_t> shape = parts.sizes().vec();
  shape[0] = 1;
  Moving moving = start(member, Kind::reduce_scatter, at::empty(shape, parts.options()), parts.contiguous());
  moving.result = moving.result.squeeze(0);
  return moving;
}

// How a layer's rows are cut.
struct Cut {
  int64_t dim;
  int64_t ranks;
  int64_t chunks;
  int64_t rows;  // of dim, in one chunk of one rank

  // Chunk `c` of every rank within a complete tensor: a view [R, ..., n, ...].
  at::Tensor of_all(const at::Tensor& whole, int64_t c) const {
    std::vector<int64_t> shape = whole.sizes().vec();
    shape.erase(shape.begin() + dim);
    shape.insert(shape.begin() + dim, {ranks, chunks, rows});
    return whole.view(shape).select(dim + 1, c).movedim(dim, 0);
  }
  // Chunk `c` of one rank's share.
  at::Tensor of_one(const at::Tensor& share, int64_t c) const { return share.narrow(dim, c * rows, rows); }
};

Cut cut_share(const char* op, const Communicator& member, const at::Tensor& x, int64_t dim, int64_t chunks, int64_t shares) {
  const int64_t parts = chunks * shares;
  TORCH_CHECK(x.dim() >= 2 && dim >= 0 && dim < x.dim() - 1 && chunks >= 1 && x.size(dim) % parts == 0, "[", op,
              "] expected a dim of x ", x.sizes(), ", not its last, that ", shares, " ranks x ", chunks, " chunks divide, got dim ", dim);
  return {dim, member.size(), chunks, x.size(dim) / parts};
}

at::Tensor like(const at::Tensor& x, int64_t dim, int64_t rows, int64_t width) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<size_t>(dim)] = rows;
  shape.back() = width;
  return at::empty(shape, x.options());
}

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// A weight as the product takes it, [in, out].
at::Tensor inputs_first(const at::Tensor& weight, bool outputs_first) { return outputs_first ? weight.t() : weight; }

// dW of y = x W.
at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& dy, bool outputs_first) {
  return outputs_first ? at::mm(as_rows(dy).t(), as_rows(x)) : at::mm(as_rows(x).t(), as_rows(dy));
}

// Calls use(c, chunk c of all ranks) while chunk c + 1 of `share` is being gathered.
template <class Use>
void gather_ahead(Communicator& member, const Cut& cut, const at::Tensor& share, const Use& use) {
  Moving next = start_gather(member, cut.of_one(share, 0));
  for (int64_t c = 0; c < cut.chunks; c++) {
    const Moving now = std::move(next);
    now.arrived();
    if (c + 1 < cut.chunks) next = start_gather(member, cut.of_one(share, c + 1));
    use(c, now.result);
  }
}

// [R, ..., s, ...] of all ranks -> [..., R s, ...].
at::Tensor gathered(const Cut& cut, const at::Tensor& stacked, const at::Tensor& share) {
  at::Tensor whole = like(share, cut.dim, share.size(cut.dim) * cut.ranks, share.size(-1));
  std::vector<int64_t> shape = whole.sizes().vec();
  shape.erase(shape.begin() + cut.dim);
  shape.insert(shape.begin() + cut.dim, {cut.ranks, share.size(cut.dim)});
  whole.view(shape).copy_(stacked.movedim(0, cut.dim));
  return whole;
}

at::Tensor gather_matmul_forward(Communicator& member, const Cut& cut, const at::Tensor& x, const at::Tensor& w) {
  if (cut.chunks == 1) return at::matmul(gathered(cut, start_gather(member, x).arrived(), x), w);
  const at::Tensor y = like(x, cut.dim, x.size(cut.dim) * cut.ranks, w.size(1));
  gather_ahead(member, cut, x, [&](int64_t c, const at::Tensor& rows) { cut.of_all(y, c).copy_(at::matmul(rows, w)); });
  return y;
}

// Gathers the input again, instead of keeping all of it, while its gradient is multiplied; scatters that gradient while the
// weight's is multiplied.
Tensors gather_matmul_backward(Communicator& member, const Cut& cut, const at::Tensor& dy, const at::Tensor& x,
                               const at::Tensor& weight, bool outputs_first) {
  const Moving inputs = start_gather(member, x);
  const at::Tensor dx_whole = at::matmul(dy, inputs_first(weight, outputs_first).t());
  const Cut shares{cut.dim, cut.ranks, 1, cut.rows * cut.chunks};
  const at::Tensor x_whole = gathered(cut, inputs.arrived(), x);
  const Moving dx = start_scatter(member, shares.of_all(dx_whole, 0));
  const at::Tensor dw = weight_gradient(x_whole, dy, outputs_first);
  return {dx.arrived(), dw};
}

at::Tensor matmul_reduce_scatter_forward(Communicator& member, const Cut& cut, const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = like(x, cut.dim, cut.rows * cut.chunks, w.size(1));
  std::vector<Moving> moving;
  for (int64_t c = 0; c < cut.chunks; c++) {
    moving.push_back(start_scatter(member, at::matmul(cut.of_all(x, c), w)));
    if (c > 0) cut.of_one(y, c - 1).copy_(moving[static_cast<size_t>(c - 1)].arrived());
  }
  cut.of_one(y, cut.chunks - 1).copy_(moving.back().arrived());
  return y;
}

Tensors matmul_reduce_scatter_backward(Communicator& member, const Cut& cut, const at::Tensor& dy, const at::Tensor& x,
                                       const at::Tensor& weight, bool outputs_first) {
  const at::Tensor w = inputs_first(weight, outputs_first);
  const at::Tensor dx = at::empty(x.sizes(), x.options());
  const at::Tensor dy_whole = like(dy, cut.dim, x.size(cut.dim), dy.size(-1));
  gather_ahead(member, cut, dy, [&](int64_t c, const at::Tensor& rows) {
    cut.of_all(dx, c).copy_(at::matmul(rows, w.t()));
    cut.of_all(dy_whole, c).copy_(rows);
  });
  return {dx, weight_gradient(x, dy_whole, outputs_first)};
}

at::Tensor gather_matmul(const at::Tensor& x, const at::Tensor& weight, bool outputs_first, int64_t number, int64_t dim,
                         int64_t chunks) {
  const Member member = communicator(number);
  const Cut cut = cut_share("gather_matmul", *member, x, dim, chunks, 1);
  const at::Tensor share = x.detach().contiguous(), w = weight.detach();
  const at::Tensor y =
      without_recording([&] { return gather_matmul_forward(*member, cut, share, inputs_first(w, outputs_first)); });
  record("gather_matmul", {x, weight}, {y}, {share, w}, [=](const Tensors& gradients, const Tensors& saved) -> Tensors {
    return gather_matmul_backward(*member, cut, gradients[0].contiguous(), saved[0], saved[1], outputs_first);
  });
  return y;
}

at::Tensor matmul_reduce_scatter(const at::Tensor& x, const at::Tensor& weight, bool outputs_first, int64_t number, int64_t dim,
                                 int64_t chunks) {
  const Member member = communicator(number);
  const Cut cut = cut_share("matmul_reduce_scatter", *member, x, dim, chunks, member->size());
  const at::Tensor whole = x.detach().contiguous(), w = weight.detach();
  const at::Tensor y =
      without_recording([&] { return matmul_reduce_scatter_forward(*member, cut, whole, inputs_first(w, outputs_first)); });
  record("matmul_reduce_scatter", {x, weight}, {y}, {whole, w}, [=](const Tensors& gradients, const Tensors& saved) -> Tensors {
    return matmul_reduce_scatter_backward(*member, cut, gradients[0].contiguous(), saved[0], saved[1], outputs_first);
  });
  return y;
}

template <class Library>
void implement_overlapped(Library& m) {
  m.impl("gather_matmul", gather_matmul);
  m.impl("matmul_reduce_scatter", matmul_reduce_scatter);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("gather_matmul(Tensor x, Tensor weight, bool outputs_first, int communicator, int dim, int chunks) -> Tensor");
  m.def("matmul_reduce_scatter(Tensor x, Tensor weight, bool outputs_first, int communicator, int dim, int chunks) -> Tensor");
}

// Below autograd the same functions record nothing, since nothing there requires a gradient; they serve every device.
TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { implement_overlapped(m); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { implement_overlapped(m); }

}  // namespace troupe::comm
