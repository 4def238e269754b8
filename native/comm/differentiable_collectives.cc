// Collectives that take part in autograd. The loss is the sum of all ranks' losses: each backward is the adjoint of its
// forward, except for those named after their place in a split layer, whose complete gradient every rank has already. Saved
// tensors and the communicator are all that backward needs; it runs in the thread that called it and waits there.

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones_like.h>
#include <torch/library.h>

#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "core/autograd/differentiable.h"

namespace troupe::comm {
namespace {

using Member = std::shared_ptr<Communicator>;

// The product of all ranks' x but this one's: without dividing, so that zeros are no trouble.
at::Tensor product_of_others(Communicator& member, const at::Tensor& x) {
  const at::Tensor all = stacked(member, x);
  const bool narrow = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  at::Tensor product = at::ones_like(x, x.options().dtype(narrow ? at::kFloat : x.scalar_type()), at::MemoryFormat::Contiguous);
  for (int rank = 0; rank < member.size(); rank++) {
    if (rank != member.rank()) product.mul_(all.select(0, rank));
  }
  return product;
}

// d(sum of gradients · reduction)/dx, of one rank; `gradient` is that of all ranks, `result` the reduction, both like x.
at::Tensor reduction_backward(Communicator& member, Reduction reduction, const at::Tensor& gradient, const at::Tensor& x,
                              const at::Tensor& result) {
  switch (reduction) {
    case Reduction::sum: return gradient;
    case Reduction::avg: return gradient.div(member.size());
    case Reduction::prod: return gradient.mul(product_of_others(member, x)).to(x.scalar_type());
    case Reduction::max:
    case Reduction::min: break;
  }
  const at::Tensor chosen = x.eq(result);
  const at::Tensor num_chosen = all_reduced(member, chosen.to(at::kInt));
  return gradient.mul(chosen).div(num_chosen).to(x.scalar_type());
}

bool needs_result(Reduction reduction) { return reduction == Reduction::max || reduction == Reduction::min; }
bool needs_input(Reduction reduction) { return needs_result(reduction) || reduction == Reduction::prod; }

// One operator: computes below autograd and records how its gradient is computed.
template <class Forward, class Adjoint>
at::Tensor differentiable(const char* op, const at::Tensor& x, const Forward& forward, Adjoint adjoint) {
  const at::Tensor y = without_recording([&] { return forward(x.detach()); });
  record(op, {x}, {y}, {}, [adjoint = std::move(adjoint)](const Tensors& gradients, const Tensors&) -> Tensors {
    return {adjoint(gradients[0])};
  });
  return y;
}

at::Tensor identity(const at::Tensor& x) { return x.alias(); }

at::Tensor copy_to_group(const at::Tensor& x, int64_t number) {
  const Member member = communicator(number);
  return differentiable("copy_to_group", x, identity, [member](const at::Tensor& dy) { return all_reduced(*member, dy); });
}

at::Tensor reduce_from_group(const at::Tensor& x, int64_t number) {
  const Member member = communicator(number);
  return differentiable("reduce_from_group", x, [&](const at::Tensor& x) { return all_reduced(*member, x); }, identity);
}

at::Tensor gather_from_group(const at::Tensor& x, int64_t number, int64_t dim) {
  const Member member = communicator(number);
  const int64_t at_dim = wrapped(x, dim, "gather_from_group");
  return differentiable("gather_from_group", x, [&](const at::Tensor& x) { return joined(*member, x, at_dim); },
                        [member, at_dim](const at::Tensor& dy) { return own_slice(*member, dy, at_dim, "gather_from_group"); });
}

at::Tensor scatter_to_group(const at::Tensor& x, int64_t number, int64_t dim) {
  const Member member = communicator(number);
  const int64_t at_dim = wrapped(x, dim, "scatter_to_group");
  return differentiable("scatter_to_group", x,
                        [&](const at::Tensor& x) { return own_slice(*member, x, at_dim, "scatter_to_group"); },
                        [member, at_dim](const at::Tensor& dy) { return joined(*member, dy, at_dim); });
}

at::Tensor gather_sequence(const at::Tensor& x, int64_t number, int64_t dim) {
  const Member member = communicator(number);
  const int64_t at_dim = wrapped(x, dim, "gather_sequence");
  return differentiable("gather_sequence", x, [&](const at::Tensor& x) { return joined(*member, x, at_dim); },
                        [member, at_dim](const at::Tensor& dy) {
                          return reduced_slice(*member, dy, at_dim, Reduction::sum, "gather_sequence");
                        });
}

at::Tensor reduce_scatter_sequence(const at::Tensor& x, int64_t number, int64_t dim) {
  const Member member = communicator(number);
  const int64_t at_dim = wrapped(x, dim, "reduce_scatter_sequence");
  return differentiable("reduce_scatter_sequence", x,
                        [&](const at::Tensor& x) {
                          return reduced_slice(*member, x, at_dim, Reduction::sum, "reduce_scatter_sequence");
                        },
                        [member, at_dim](const at::Tensor& dy) { return joined(*member, dy, at_dim); });
}

at::Tensor group_all_reduce(const at::Tensor& x, int64_t number, int64_t reduction_code) {
  const Member member = communicator(number);
  const auto reduction = static_cast<Reduction>(reduction_code);
  const at::Tensor input = x.detach();
  const at::Tensor y = without_recording([&] { return all_reduced(*member, input, reduction); });
  const at::Tensor none;
  record("group_all_reduce", {x}, {y}, {needs_input(reduction) ? input : none, needs_result(reduction) ? y : none},
         [member, reduction](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const at::Tensor gradient = all_reduced(*member, gradients[0]);
           return {reduction_backward(*member, reduction, gradient, saved[0], saved[1])};
         });
  return y;
}

at::Tensor group_reduce_scatter(const at::Tensor& x, int64_t number, int64_t reduction_code) {
  const Member member = communicator(number);
  const auto reduction = static_cast<Reduction>(reduction_code);
  wrapped(x, 0, "group_reduce_scatter");
  const at::Tensor input = x.detach();
  const at::Tensor y = without_recording([&] { return reduced_slice(*member, input, 0, reduction, "group_reduce_scatter"); });
  const at::Tensor none;
  record("group_reduce_scatter", {x}, {y}, {needs_input(reduction) ? input : none, needs_result(reduction) ? y : none},
         [member, reduction](const Tensors& gradients, const Tensors& saved) -> Tensors {
           const at::Tensor gradient = joined(*member, gradients[0], 0);
           const at::Tensor result = saved[1].defined() ? joined(*member, saved[1], 0) : saved[1];
           return {reduction_backward(*member, reduction, gradient, saved[0], result)};
         });
  return y;
}

at::Tensor group_broadcast(const at::Tensor& x, int64_t number, int64_t root_rank) {
  const Member member = communicator(number);
  const int root = static_cast<int>(root_rank);
  return differentiable("group_broadcast", x, [&](const at::Tensor& x) { return broadcasted(*member, x, root); },
                        [member, root](const at::Tensor& dy) { return summed_at(*member, dy, root); });
}

at::Tensor group_all_to_all(const at::Tensor& x, int64_t number, at::IntArrayRef output_splits, at::IntArrayRef input_splits) {
  const Member member = communicator(number);
  const std::vector<int64_t> from = output_splits.vec(), to = input_splits.vec();
  const char* op = "group_all_to_all";
  return differentiable(op, x, [&](const at::Tensor& x) { return exchanged(*member, x, from, to, op); },
                        [member, from, to, op](const at::Tensor& dy) { return exchanged(*member, dy, to, from, op); });
}

template <class Library>
void implement_collectives(Library& m) {
  m.impl("copy_to_group", copy_to_group);
  m.impl("reduce_from_group", reduce_from_group);
  m.impl("gather_from_group", gather_from_group);
  m.impl("scatter_to_group", scatter_to_group);
  m.impl("gather_sequence", gather_sequence);
  m.impl("reduce_scatter_sequence", reduce_scatter_sequence);
  m.impl("group_all_reduce", group_all_reduce);
  m.impl("group_reduce_scatter", group_reduce_scatter);
  m.impl("group_broadcast", group_broadcast);
  m.impl("group_all_to_all", group_all_to_all);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("copy_to_group(Tensor(a) x, int communicator) -> Tensor(a)");
  m.def("reduce_from_group(Tensor x, int communicator) -> Tensor");
  m.def("gather_from_group(Tensor x, int communicator, int dim) -> Tensor");
  m.def("scatter_to_group(Tensor x, int communicator, int dim) -> Tensor");
  m.def("gather_sequence(Tensor x, int communicator, int dim) -> Tensor");
  m.def("reduce_scatter_sequence(Tensor x, int communicator, int dim) -> Tensor");
  m.def("group_all_reduce(Tensor x, int communicator, int reduction) -> Tensor");
  m.def("group_reduce_scatter(Tensor x, int communicator, int reduction) -> Tensor");
  m.def("group_broadcast(Tensor x, int communicator, int root) -> Tensor");
  m.def("group_all_to_all(Tensor x, int communicator, int[] output_splits, int[] input_splits) -> Tensor");
}

// Below autograd the same functions record nothing, since nothing there requires a gradient; they serve every device.
TORCH_LIBRARY_IMPL(troupe, CompositeExplicitAutograd, m) { implement_collectives(m); }

TORCH_LIBRARY_IMPL(troupe, Autograd, m) { implement_collectives(m); }

}  // namespace troupe::comm
