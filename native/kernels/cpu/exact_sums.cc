// Statistics of slices for optimizers that look at complete parameters: largest magnitudes, and sums of squares that add up to
// the same bits for all slicings.

#include "kernels/cpu/exact_sums.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/lanes.h"
#include "kernels/register.h"

namespace troupe {
namespace {

constexpr int kSquareLanes = 16;

void check(const char* op, const at::Tensor& flat, at::IntArrayRef ends) {
  TORCH_CHECK(flat.is_contiguous() && flat.scalar_type() == at::kFloat, "[", op, "] expected flat to be contiguous float32, got ",
              flat.scalar_type(), " with strides ", flat.strides());
  TORCH_CHECK(std::is_sorted(ends.begin(), ends.end()) && (ends.empty() || (ends[0] >= 0 && ends.back() <= flat.numel())),
              "[", op, "] expected ends to rise to at most the number of elements, ", flat.numel(), ", got ", ends);
}

struct LargestMagnitude {
  static TROUPE_INLINE float run(const float* from, int64_t begin, int64_t end) {
    return max_of<kSquareLanes>(begin, end, 0.0f, [&](int64_t i) TROUPE_INLINE_LAMBDA { return std::fabs(from[i]); });
  }
};

at::Tensor find_maxima(const at::Tensor& flat, at::IntArrayRef ends) {
  const at::Tensor maxima = at::empty({static_cast<int64_t>(ends.size())}, flat.options().dtype(at::kDouble));
  const float* from = flat.data_ptr<float>();
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); begin = ends[i], i++) {
    maxima.data_ptr<double>()[i] = run_best<LargestMagnitude>(from, begin, ends[i]);
  }
  return maxima;
}

TROUPE_KERNEL(segment_maxima, find_maxima);

at::Tensor segment_maxima(const at::Tensor& flat, at::IntArrayRef ends) {
  check("segment_maxima", flat, ends);
  return segment_maxima_kernel(flat, ends);
}

struct SquareSums {
  static TROUPE_INLINE void run(const float* from, int64_t begin, int64_t end, ExactBins bins, double* sums) {
    double coarse[kSquareLanes] = {}, fine[kSquareLanes] = {};
    int64_t i = begin;
    for (; i + kSquareLanes <= end; i += kSquareLanes) {
      for (int lane = 0; lane < kSquareLanes; lane++) {
        double c, f;
        const double value = from[i + lane];
        bins.split(value * value, c, f);
        coarse[lane] += c;
        fine[lane] += f;
      }
    }
    for (; i < end; i++) {
      double c, f;
      const double value = from[i];
      bins.split(value * value, c, f);
      coarse[0] += c;
      fine[0] += f;
    }
    sums[0] = sum_lanes(coarse);
    sums[1] = sum_lanes(fine);
  }
};

at::Tensor sum_exactly(const at::Tensor& flat, at::IntArrayRef ends, at::ArrayRef<double> bounds) {
  const at::Tensor sums = at::zeros({static_cast<int64_t>(ends.size()), 2}, flat.options().dtype(at::kDouble));
  const float* from = flat.data_ptr<float>();
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); begin = ends[i], i++) {
    run_best<SquareSums>(from, begin, ends[i], ExactBins(bounds[i]), sums.data_ptr<double>() + 2 * i);
  }
  return sums;
}

TROUPE_KERNEL(exact_square_sums, sum_exactly);

at::Tensor exact_square_sums(const at::Tensor& flat, at::IntArrayRef ends, at::ArrayRef<double> bounds) {
  check("exact_square_sums", flat, ends);
  TORCH_CHECK(ends.size() == bounds.size(), "[exact_square_sums] expected each segment to have a bound, got ", ends.size(), " and ",
              bounds.size());
  return exact_square_sums_kernel(flat, ends, bounds);
}

// One row, or what of it lies here.
struct RowOfSquares {
  static TROUPE_INLINE void run(const float* from, int64_t numel, float scale, ExactBins bins, double* __restrict row_sums,
                                double* __restrict columns_coarse, double* __restrict columns_fine) {
    double coarse[kSquareLanes] = {}, fine[kSquareLanes] = {};
    const auto add = [&](int64_t i, int lane) TROUPE_INLINE_LAMBDA {
      double c, f;
      const double value = from[i] * scale;
      bins.split(value * value, c, f);
      coarse[lane] += c;
      fine[lane] += f;
      columns_coarse[i] += c;
      columns_fine[i] += f;
    };
    int64_t i = 0;
    for (; i + kSquareLanes <= numel; i += kSquareLanes) {
      for (int lane = 0; lane < kSquareLanes; lane++) add(i + lane, lane);
    }
    for (; i < numel; i++) add(i, 0);
    row_sums[0] += sum_lanes(coarse);
    row_sums[1] += sum_lanes(fine);
  }
};

// shape: matrices, rows, columns. Sums of (gradient · scale)² over each row [matrices · rows, 2] and each column
// [2, matrices · columns] of this slice, which begins at element `begin`.
std::tuple<at::Tensor, at::Tensor> sum_factored(const at::Tensor& grad, at::IntArrayRef shape, int64_t begin, double scale,
                                                ExactBins bins) {
  const int64_t rows = shape[1], columns = shape[2];
  const at::TensorOptions options = grad.options().dtype(at::kDouble);
  const at::Tensor row_sums = at::zeros({shape[0] * rows, 2}, options);
  const at::Tensor column_sums = at::zeros({2, shape[0] * columns}, options);
  double* coarse = column_sums.data_ptr<double>();
  double* fine = coarse + shape[0] * columns;
  const float* from = grad.data_ptr<float>();
  for (int64_t done = 0; done < grad.numel();) {
    const int64_t row = (begin + done) / columns, column = (begin + done) % columns;
    const int64_t length = std::min(columns - column, grad.numel() - done);
    const int64_t place = row / rows * columns + column;
    run_best<RowOfSquares>(from + done, length, static_cast<float>(scale), bins,
                           row_sums.data_ptr<double>() + 2 * row, coarse + place, fine + place);
    done += length;
  }
  return {row_sums, column_sums};
}

TROUPE_KERNEL(factored_square_sums, sum_factored);

std::tuple<at::Tensor, at::Tensor> factored_square_sums(const at::Tensor& grad, at::IntArrayRef shape, int64_t begin,
                                                        double scale, double bound) {
  check("factored_square_sums", grad, {});
  TORCH_CHECK(shape.size() == 3 && begin >= 0 && begin + grad.numel() <= shape[0] * shape[1] * shape[2],
              "[factored_square_sums] expected grad to lie within ", shape, ", got ", grad.numel(), " elements from ", begin);
  return factored_square_sums_kernel(grad, shape, begin, scale, ExactBins(bound));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(troupe, m) {
  m.def("segment_maxima(Tensor flat, int[] ends) -> Tensor");
  m.def("exact_square_sums(Tensor flat, int[] ends, float[] bounds) -> Tensor");
  m.def(
      "factored_square_sums(Tensor grad, int[] shape, int begin, float scale, float bound) -> (Tensor rows, Tensor columns)");
}

TROUPE_OPERATORS(m) {
  m.impl("segment_maxima", segment_maxima);
  m.impl("exact_square_sums", exact_square_sums);
  m.impl("factored_square_sums", factored_square_sums);
}

}  // namespace troupe
