// Kernels that look at each element alone: memory for what they write.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "core/autograd/differentiable.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const Call call(gate);
  const at::Tensor y = at::empty_like(gate);
  launch_swiglu(call.stream(), format_of(gate), y.numel(), gate.data_ptr(), up.data_ptr(), y.data_ptr());
  return y;
}

Tensors swiglu_backward(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up) {
  const Call call(gate);
  const at::Tensor dgate = at::empty_like(gate), dup = at::empty_like(up);
  launch_swiglu_backward(call.stream(), format_of(gate), dy.numel(), dy.data_ptr(), gate.data_ptr(), up.data_ptr(),
                         dgate.data_ptr(), dup.data_ptr());
  return {dgate, dup};
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, float sign) {
  const Call call(x);
  const RotaryShape shape{x.size(0), x.size(1), x.size(2), x.size(3), cosines.size(1), x.stride(0), x.stride(1), x.stride(2)};
  const at::Tensor y_BTHK = at::empty({shape.batches, shape.time, shape.heads, shape.width}, x.options());
  launch_rotary(call.stream(), format_of(x), shape, x.data_ptr(), floats(cosines), floats(sines), sign, y_BTHK.data_ptr());
  return y_BTHK.transpose(1, 2);
}

PhiloxPlace place_of(PhiloxRow row, uint64_t offset) { return {row.seed, row.stream, offset}; }

at::Tensor dropout(const at::Tensor& x, const DropoutMask& mask, const DropoutPlaces& places) {
  const Call call(x);
  const at::Tensor y = at::empty_like(x);
  launch_dropout(call.stream(), format_of(x), x.numel(), x.data_ptr(), place_of(mask.row, places.of(0)), places.run,
                 places.stride, mask.threshold, mask.scale, y.data_ptr());
  return y;
}

void philox_uniform(const at::Tensor& to, PhiloxRow row, uint64_t offset, float low, float high) {
  const Call call(to);
  launch_philox_uniform(call.stream(), array_of(to), to.numel(), place_of(row, offset), low, high);
}

void philox_normal(const at::Tensor& to, PhiloxRow row, uint64_t offset, float mean, float std) {
  const Call call(to);
  launch_philox_normal(call.stream(), array_of(to), to.numel(), place_of(row, offset), mean, std);
}

void round_stochastic(const at::Tensor& out, const at::Tensor& values, PhiloxRow row, uint64_t offset) {
  const Call call(out);
  launch_round_stochastic(call.stream(), array_of(out), floats(values), out.numel(), place_of(row, offset));
}

void reduce_ranks(const at::Tensor& out, at::TensorList sources, int64_t begin, const at::Tensor& squares) {
  const Call call(out);
  for (size_t rank = 0; rank < sources.size(); rank++) {
    const at::Tensor from = sources[rank].view({-1}).narrow(0, begin, out.numel());
    launch_add_range(call.stream(), array_of(out), array_of(from), out.numel(), rank > 0);
  }
  if (squares.defined()) launch_chunk_square_sums(call.stream(), array_of(out), out.numel(), squares.data_ptr<double>());
}

// Added at once: a model has hundreds, of microseconds each.
void add_pieces(const at::Tensor& to, const std::vector<std::pair<int64_t, at::Tensor>>& gradients, bool accumulate) {
  const Call call(to);
  Tensors contiguous;
  std::vector<Piece> some;
  for (size_t i = 0; i < gradients.size(); i++) {
    const auto& [begin, gradient] = gradients[i];
    const at::Tensor& from = contiguous.emplace_back(gradient.contiguous());
    some.push_back({from.data_ptr(), begin, from.numel()});
    const bool ends = i + 1 == gradients.size() || gradients[i + 1].second.scalar_type() != from.scalar_type();
    if (!ends && some.size() < kMostPieces) continue;
    launch_add_pieces(call.stream(), array_of(to), format_of(from), some.data(), static_cast<int>(some.size()), accumulate);
    some.clear();
  }
}

// Waits for the device: the answer is the host's.
bool all_finite(at::TensorList tensors) {
  at::Tensor bad;
  for (const at::Tensor& tensor : tensors) {
    const at::ScalarType dtype = tensor.scalar_type();
    if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf) {
      if (!at::isfinite(tensor).all().item<bool>()) return false;
      continue;
    }
    const Call call(tensor);
    if (!bad.defined() || bad.device() != tensor.device()) {
      if (bad.defined() && bad.item<int>() != 0) return false;
      bad = at::zeros({}, tensor.options().dtype(at::kInt));
    }
    const at::Tensor contiguous = tensor.contiguous();
    launch_find_bad(call.stream(), array_of(contiguous), contiguous.numel(), bad.data_ptr<int>());
  }
  return !bad.defined() || bad.item<int>() == 0;
}

TROUPE_CUDA_KERNEL(swiglu, swiglu);
TROUPE_CUDA_KERNEL(swiglu_backward, swiglu_backward);
TROUPE_CUDA_KERNEL(rotary, rotary);
TROUPE_CUDA_KERNEL(dropout, dropout);
TROUPE_CUDA_KERNEL(philox_uniform, philox_uniform);
TROUPE_CUDA_KERNEL(philox_normal, philox_normal);
TROUPE_CUDA_KERNEL(round_stochastic, round_stochastic);
TROUPE_CUDA_KERNEL(reduce_ranks, reduce_ranks);
TROUPE_CUDA_KERNEL(add_pieces, add_pieces);
TROUPE_CUDA_KERNEL(all_finite, all_finite);

}  // namespace
}  // namespace troupe::cuda
