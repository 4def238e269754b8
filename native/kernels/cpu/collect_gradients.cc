// Gathers the gradients of a block's parameters into its flat gradient buffer. Those that were computed there stay as they are.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "core/autograd/row_gradients.h"
#include "kernels/cpu/add_range.h"
#include "kernels/register.h"

namespace troupe {
namespace {

using OptionalTensors = c10::List<c10::optional<at::Tensor>>;

int64_t numel_of(const c10::optional<at::Tensor>& gradient) {
  return gradient && gradient->defined() ? gradient->numel() : 0;
}

void check(const at::Tensor& flat, const OptionalTensors& gradients, at::IntArrayRef offsets) {
  TORCH_CHECK(flat.dim() == 1 && flat.is_contiguous() && at::isFloatingType(flat.scalar_type()),
              "[collect_gradients_] expected flat to be one contiguous row of floats, got ", flat.sizes());
  TORCH_CHECK(gradients.size() == offsets.size(), "[collect_gradients_] expected each gradient to have an offset, got ",
              gradients.size(), " and ", offsets.size());
  int64_t taken = 0;
  for (size_t i = 0; i < offsets.size(); i++) {
    const int64_t end = offsets[i] + numel_of(gradients.get(i));
    TORCH_CHECK(offsets[i] >= taken && end <= flat.numel(), "[collect_gradients_] expected gradients to follow each other within ",
                flat.numel(), " elements, got number ", i, " at ", offsets[i], " to ", end, ", where ", taken, " are taken");
    taken = end;
  }
}

// The formats of training; others (float64) are left to libtorch's own copy.
bool has_float_type(const at::Tensor& tensor) { return with_float_type(tensor.scalar_type(), [](auto*) {}); }

// Gradients, each with its place in the buffer.
using Pieces = std::vector<std::pair<int64_t, at::Tensor>>;

bool lies_in_place(const at::Tensor& flat, int64_t offset, const at::Tensor& gradient) {
  return gradient.is_alias_of(flat) && gradient.is_contiguous() && gradient.scalar_type() == flat.scalar_type() &&
         gradient.storage_offset() == flat.storage_offset() + offset;
}

void add_each(const at::Tensor& flat, const Pieces& pieces, bool accumulate) {
  for (const auto& [offset, gradient] : pieces) {
    // A transposed gradient is copied by libtorch in tiles first: reading it in stride would be slower.
    const at::Tensor contiguous = gradient.contiguous();
    with_float_type(flat.scalar_type(), [&, offset = offset](auto* to_type) {
      with_float_type(contiguous.scalar_type(), [&](auto* from_type) {
        using To = std::remove_pointer_t<decltype(to_type)>;
        using From = std::remove_pointer_t<decltype(from_type)>;
        To* to = flat.data_ptr<To>() + offset;
        const From* from = contiguous.data_ptr<From>();
        at::parallel_for(0, contiguous.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
          add_range(to + begin, from + begin, end - begin, accumulate);
        });
      });
    });
  }
}

TROUPE_KERNEL(add_pieces, add_each);

// Adds rows of a table to a dense one that lies at an offset.
void add_rows(const at::Tensor& flat, int64_t offset, const at::Tensor& gradient) {
  const at::Tensor rows =
      gradient.is_coalesced() ? gradient : sum_rows(gradient._indices()[0], gradient._values(), gradient.size(0));
  const at::Tensor values = rows._values().contiguous();
  const int64_t width = values.size(1);
  const int64_t* const ids = rows._indices().const_data_ptr<int64_t>();
  with_float_type(flat.scalar_type(), [&](auto* to_type) {
    with_float_type(values.scalar_type(), [&](auto* from_type) {
      using To = std::remove_pointer_t<decltype(to_type)>;
      using From = std::remove_pointer_t<decltype(from_type)>;
      To* const to = flat.data_ptr<To>() + offset;
      for (int64_t i = 0; i < values.size(0); i++) add_range(to + ids[i] * width, values.const_data_ptr<From>() + i * width, width, true);
    });
  });
}

void collect_gradients_(at::Tensor flat, const OptionalTensors& gradients, at::IntArrayRef offsets, bool accumulate) {
  check(flat, gradients, offsets);
  Pieces pieces;
  int64_t written = 0;
  const auto zero_until = [&](int64_t end) {
    if (!accumulate && end > written) flat.narrow(0, written, end - written).zero_();
  };
  for (size_t i = 0; i < offsets.size(); i++) {
    const c10::optional<at::Tensor> gradient = gradients.get(i);
    const int64_t numel = numel_of(gradient);
    if (numel == 0) continue;
    zero_until(gradient->is_sparse() ? offsets[i] + numel : offsets[i]);
    written = offsets[i] + numel;
    if (gradient->is_sparse()) {
      add_rows(flat, offsets[i], *gradient);
      continue;
    }
    if (!accumulate && lies_in_place(flat, offsets[i], *gradient)) continue;
    if (has_float_type(flat) && has_float_type(*gradient)) {
      pieces.emplace_back(offsets[i], *gradient);
      continue;
    }
    const at::Tensor piece = flat.narrow(0, offsets[i], numel), row = gradient->reshape({-1});
    if (accumulate) {
      piece.add_(row);
    } else {
      piece.copy_(row);
    }
  }
  zero_until(flat.numel());
  add_pieces_kernel(flat, pieces, accumulate);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("collect_gradients_(Tensor(a!) flat, Tensor?[] gradients, int[] offsets, bool accumulate) -> ()");
}

TROUPE_OPERATORS(m) { m.impl("collect_gradients_", collect_gradients_); }
// With rows of a table among the gradients.
TORCH_LIBRARY_IMPL(troupe, SparseCPU, m) { m.impl("collect_gradients_", collect_gradients_); }

}  // namespace troupe
