// Cuts windows out of a long row of tokens: inputs, and targets one further, as the int64 that embeddings want.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <tuple>

#include "kernels/register.h"

namespace troupe {
namespace {

template <class Token>
void widen(const Token* from, int64_t* inputs, int64_t* targets, int64_t length) {
  for (int64_t i = 0; i < length; i++) {
    inputs[i] = from[i];
    targets[i] = from[i + 1];
  }
}

// 16-bit tokens are unsigned in every token file, and int16 in versions of libtorch that have no uint16.
void widen_window(const at::Tensor& tokens, int64_t start, int64_t* inputs, int64_t* targets, int64_t length) {
  const void* data = tokens.data_ptr();
  switch (tokens.scalar_type()) {
    case at::kByte: return widen(static_cast<const uint8_t*>(data) + start, inputs, targets, length);
    case at::kShort: return widen(static_cast<const uint16_t*>(data) + start, inputs, targets, length);
    default: return widen(static_cast<const int32_t*>(data) + start, inputs, targets, length);
  }
}

std::tuple<at::Tensor, at::Tensor> widen_windows(const at::Tensor& tokens, at::IntArrayRef starts, int64_t length) {
  const auto num_windows = static_cast<int64_t>(starts.size());
  at::Tensor inputs = at::empty({num_windows, length}, tokens.options().dtype(at::kLong));
  at::Tensor targets = at::empty_like(inputs);
  auto* to_inputs = inputs.data_ptr<int64_t>();
  auto* to_targets = targets.data_ptr<int64_t>();
  for (int64_t window = 0; window < num_windows; window++) {
    const int64_t offset = window * length;
    widen_window(tokens, starts[static_cast<size_t>(window)], to_inputs + offset, to_targets + offset, length);
  }
  return {inputs, targets};
}

TROUPE_KERNEL(token_windows, widen_windows);

std::tuple<at::Tensor, at::Tensor> token_windows(const at::Tensor& tokens, at::IntArrayRef starts, int64_t length) {
  const at::ScalarType dtype = tokens.scalar_type();
  TORCH_CHECK(dtype == at::kByte || dtype == at::kShort || dtype == at::kInt,
              "[token_windows] expected tokens to be uint8, int16 (read as unsigned) or int32, got ", dtype);
  TORCH_CHECK(tokens.dim() == 1 && tokens.is_contiguous(), "[token_windows] expected tokens to be one contiguous row, got ",
              tokens.sizes());
  TORCH_CHECK(length >= 0, "[token_windows] expected length not to be negative, got ", length);
  for (int64_t start : starts) {
    TORCH_CHECK(start >= 0 && start + length < tokens.numel(), "[token_windows] expected a window of ", length,
                " tokens and its last target to lie within ", tokens.numel(), " tokens, got start ", start);
  }
  return token_windows_kernel(tokens, starts, length);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("token_windows(Tensor tokens, int[] starts, int length) -> (Tensor inputs, Tensor targets)");
}

TROUPE_OPERATORS(m) { m.impl("token_windows", token_windows); }

}  // namespace troupe
