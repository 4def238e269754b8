// Sums with the same bits on the host and on devices: copies the segments to the device, and sets the results to zero first.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/cpu/exact_sums.h"
#include "kernels/cuda/call.h"
#include "kernels/register.h"

namespace troupe::cuda {
namespace {

// A copy on the device of numbers of the host, which may go at once: CUDA has taken in what is not pinned when the copy returns.
template <class T>
at::Tensor on_device(const std::vector<T>& numbers, at::ScalarType dtype, const at::Tensor& like) {
  const at::Tensor host = at::empty({static_cast<int64_t>(numbers.size())}, at::TensorOptions().dtype(dtype));
  std::copy(numbers.begin(), numbers.end(), host.data_ptr<T>());
  return host.to(like.device(), /*non_blocking=*/true);
}

// [2, segments]: where each begins and ends.
at::Tensor bounds_of(at::IntArrayRef ends, const at::Tensor& like) {
  std::vector<int64_t> bounds{0};
  bounds.insert(bounds.end(), ends.begin(), ends.end());
  if (!ends.empty()) bounds.pop_back();
  bounds.insert(bounds.end(), ends.begin(), ends.end());
  return on_device(bounds, at::kLong, like);
}

void chunk_square_sums(const at::Tensor& flat, const at::Tensor& sums) {
  const Call call(flat);
  launch_chunk_square_sums(call.stream(), array_of(flat), flat.numel(), sums.data_ptr<double>());
}

void sum_square_sums(const at::Tensor& shares, int64_t members, at::IntArrayRef chunks, const at::Tensor& sums) {
  const Call call(shares);
  const int64_t kinds = sums.numel();
  BlockSquares block{shares.data_ptr<double>(), members, shares.numel() / members, 0, 0};
  for (const int64_t count : chunks) {
    block.count = count;
    launch_add_square_sums(call.stream(), block, kinds, sums.data_ptr<double>());
    block.begin += kinds * count;
  }
}

void gradient_scales(const at::Tensor& squares, double divisor, at::ArrayRef<double> limits, bool leaves_out,
                     const at::Tensor& scales) {
  const Call call(squares);
  const auto kinds = static_cast<int64_t>(limits.size());
  const GradientParts gradient{squares.data_ptr<double>(), squares.size(0), kinds, divisor};
  for (int64_t kind = 0; kind < kinds; kind++) {
    launch_gradient_scale(call.stream(), gradient, kind, limits[kind], leaves_out, scales.data_ptr<double>() + 2 * kind);
  }
}

at::Tensor segment_maxima(const at::Tensor& flat, at::IntArrayRef ends) {
  const Call call(flat);
  const auto segments = static_cast<int64_t>(ends.size());
  const at::Tensor maxima = at::zeros({segments}, flat.options().dtype(at::kDouble));
  if (segments == 0) return maxima;
  const at::Tensor bounds = bounds_of(ends, flat);
  const auto* begins = bounds.data_ptr<int64_t>();
  launch_segment_maxima(call.stream(), floats(flat), begins, begins + segments, segments, maxima.data_ptr<double>());
  return maxima;
}

at::Tensor exact_square_sums(const at::Tensor& flat, at::IntArrayRef ends, at::ArrayRef<double> bounds) {
  const Call call(flat);
  std::vector<double> bins;
  for (const double bound : bounds) {
    const ExactBins of_segment(bound);
    bins.insert(bins.end(), {of_segment.coarse(), of_segment.fine()});
  }
  const auto segments = static_cast<int64_t>(ends.size());
  const at::Tensor sums = at::zeros({segments, 2}, flat.options().dtype(at::kDouble));
  if (segments == 0) return sums;
  const at::Tensor segments_at = bounds_of(ends, flat), units = on_device(bins, at::kDouble, flat);
  const auto* begins = segments_at.data_ptr<int64_t>();
  launch_exact_square_sums(call.stream(), floats(flat), begins, begins + segments, units.data_ptr<double>(), segments,
                           sums.data_ptr<double>());
  return sums;
}

std::tuple<at::Tensor, at::Tensor> factored_square_sums(const at::Tensor& grad, at::IntArrayRef shape, int64_t begin,
                                                        double scale, ExactBins bins) {
  const Call call(grad);
  const at::TensorOptions options = grad.options().dtype(at::kDouble);
  const at::Tensor rows = at::zeros({shape[0] * shape[1], 2}, options), columns = at::zeros({2, shape[0] * shape[2]}, options);
  launch_factored_square_sums(call.stream(), floats(grad), {shape[0], shape[1], shape[2], begin, grad.numel()},
                              static_cast<float>(scale), bins.coarse(), bins.fine(), rows.data_ptr<double>(),
                              columns.data_ptr<double>());
  return {rows, columns};
}

void adafactor_matrix(const at::Tensor& grad, const at::Tensor& row_factors, const at::Tensor& column_factors,
                      at::IntArrayRef shape, int64_t begin, double scale) {
  const Call call(grad);
  launch_adafactor_matrix(call.stream(), floats(grad), {shape[0], shape[1], shape[2], begin, grad.numel()},
                          floats(row_factors), floats(column_factors), static_cast<float>(scale));
}

TROUPE_CUDA_KERNEL(chunk_square_sums, chunk_square_sums);
TROUPE_CUDA_KERNEL(sum_square_sums, sum_square_sums);
TROUPE_CUDA_KERNEL(gradient_scales, gradient_scales);
TROUPE_CUDA_KERNEL(segment_maxima, segment_maxima);
TROUPE_CUDA_KERNEL(exact_square_sums, exact_square_sums);
TROUPE_CUDA_KERNEL(factored_square_sums, factored_square_sums);
TROUPE_CUDA_KERNEL(adafactor_matrix, adafactor_matrix);

}  // namespace
}  // namespace troupe::cuda
