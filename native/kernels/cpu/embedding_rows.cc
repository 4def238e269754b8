// The gradient of an embedding. libtorch fills a table of zeros, of which a batch changes a hundredth; where rows are
// wanted, it is those.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/embedding_dense_backward_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/autograd/row_gradients.h"
#include "core/silence_warnings.h"
#include "kernels/cpu/add_range.h"
#include "kernels/cpu/float_formats.h"

namespace troupe {
namespace {

thread_local bool wants_rows = false;

constexpr int64_t kLeastRowsAPosition = 4;  // of a table: with fewer its zeros cost little

// Whether the node that is walked hands its gradient to a leaf, and not to another node, which may not know sparse ones.
bool leads_to_leaf() {
  const auto node = torch::autograd::get_current_node();
  if (!node || node->num_outputs() == 0) return false;
  const auto& next = node->next_edge(0).function;
  return next && next->name() == "torch::autograd::AccumulateGrad";
}

at::Tensor embedding_backward(const at::Tensor& gradient, const at::Tensor& ids, int64_t num_rows, int64_t padding_row, bool by_frequency) {
  const bool few = num_rows >= kLeastRowsAPosition * ids.numel() && ids.numel() > 0;
  const bool known = ids.scalar_type() == at::kLong && with_float_type(gradient.scalar_type(), [](auto*) {});
  if (!wants_rows || !few || !known || by_frequency || padding_row >= 0 || !leads_to_leaf()) {
    return at::cpu::embedding_dense_backward(gradient, ids, num_rows, padding_row, by_frequency);
  }
  return sum_rows(ids.reshape({-1}), gradient.reshape({ids.numel(), gradient.size(-1)}), num_rows);
}

}  // namespace

RowGradients::RowGradients() : outer_(std::exchange(wants_rows, true)) {}
RowGradients::~RowGradients() { wants_rows = outer_; }

at::Tensor sum_rows(const at::Tensor& ids_N, const at::Tensor& values_ND, int64_t num_rows) {
  const at::Tensor ids = ids_N.contiguous(), values = values_ND.contiguous();
  const int64_t* const id_of = ids.const_data_ptr<int64_t>();
  const int64_t width = values.size(1);
  std::vector<int64_t> order(static_cast<size_t>(ids.numel()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t one, int64_t other) { return id_of[one] < id_of[other]; });
  std::vector<int64_t> rows;
  for (const int64_t place : order) {
    if (rows.empty() || rows.back() != id_of[place]) rows.push_back(id_of[place]);
  }
  const auto num_sums = static_cast<int64_t>(rows.size());
  const at::Tensor row_ids = at::empty({1, num_sums}, ids.options()), sums = at::empty({num_sums, width}, values.options());
  std::copy(rows.begin(), rows.end(), row_ids.mutable_data_ptr<int64_t>());
  with_float_type(values.scalar_type(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    const Element* const from = values.const_data_ptr<Element>();
    Element* to = sums.mutable_data_ptr<Element>() - width;
    for (size_t i = 0; i < order.size(); i++) {
      const bool again = i > 0 && id_of[order[i]] == id_of[order[i - 1]];
      if (!again) to += width;
      add_range(to, from + order[i] * width, width, again);
    }
  });
  at::Tensor sparse = at::_sparse_coo_tensor_unsafe(row_ids, sums, {num_rows, width}, sums.options().layout(at::kSparse));
  return sparse._coalesced_(true);
}

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  // libtorch warns when a kernel is replaced; here that is the intention.
  const SilenceWarnings silence;
  m.impl("embedding_dense_backward", embedding_backward);
}

}  // namespace troupe
