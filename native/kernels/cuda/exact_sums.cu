// Largest magnitudes and exact sums of squares: see kernels/cpu/exact_sums.h. Every part that is added is a multiple of one
// unit, so that atomic additions in any order give the same bits.
#include <algorithm>

#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

constexpr int kSumThreads = 256;
constexpr int kBlocksASegment = 64;

__device__ __forceinline__ void split(double term, double coarse_unit, double fine_unit, double& coarse, double& fine) {
  const double c = (coarse_unit + term) - coarse_unit;
  coarse += c;
  fine += (fine_unit + (term - c)) - fine_unit;
}

__global__ void find_maxima(const float* from, const int64_t* begins, const int64_t* ends, double* maxima) {
  const int segment = blockIdx.y;
  float largest = 0.0f;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = begins[segment] + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < ends[segment]; i += stride) {
    const float magnitude = fabsf(from[i]);
    largest = magnitude > largest ? magnitude : largest;
  }
  largest = join_block<Max>(largest);
  // Doubles that are not negative are ordered as their bits.
  if (threadIdx.x == 0) {
    atomicMax(reinterpret_cast<unsigned long long*>(maxima + segment),
              static_cast<unsigned long long>(__double_as_longlong(static_cast<double>(largest))));
  }
}

__global__ void sum_squares(const float* from, const int64_t* begins, const int64_t* ends, const double* bins, double* sums) {
  const int segment = blockIdx.y;
  const double coarse_unit = bins[2 * segment], fine_unit = bins[2 * segment + 1];
  double coarse = 0, fine = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = begins[segment] + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < ends[segment]; i += stride) {
    const double value = from[i];
    split(value * value, coarse_unit, fine_unit, coarse, fine);
  }
  coarse = sum_block(coarse);
  fine = sum_block(fine);
  if (threadIdx.x != 0) return;
  atomicAdd(sums + 2 * segment, coarse);
  atomicAdd(sums + 2 * segment + 1, fine);
}

constexpr int64_t kStripRows = 32;
constexpr int64_t kMostStrips = 65535;  // of a grid; more are looped over

// Sums rows `first` to `last - 1` by 256 columns: a thread a column.
__device__ void sum_strip(const float* from, const MatrixSlice& slice, int64_t first, int64_t last, float scale, double coarse_unit,
                          double fine_unit, double* row_sums, double* column_sums) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t all_columns = slice.matrices * slice.columns;
  double coarse = 0, fine = 0;
  const auto give_columns = [&](int64_t matrix) {
    if (column >= slice.columns) return;
    atomicAdd(column_sums + matrix * slice.columns + column, coarse);
    atomicAdd(column_sums + all_columns + matrix * slice.columns + column, fine);
    coarse = 0;
    fine = 0;
  };
  for (int64_t row = first; row < last; row++) {
    if (row > first && row % slice.rows == 0) give_columns(row / slice.rows - 1);
    const int64_t index = row * slice.columns + column - slice.begin;
    double of_row_coarse = 0, of_row_fine = 0;
    if (column < slice.columns && index >= 0 && index < slice.numel) {
      const double value = from[index] * scale;
      split(value * value, coarse_unit, fine_unit, of_row_coarse, of_row_fine);
    }
    coarse += of_row_coarse;
    fine += of_row_fine;
    of_row_coarse = sum_block(of_row_coarse);
    of_row_fine = sum_block(of_row_fine);
    if (threadIdx.x == 0) {
      atomicAdd(row_sums + 2 * row, of_row_coarse);
      atomicAdd(row_sums + 2 * row + 1, of_row_fine);
    }
  }
  give_columns((last - 1) / slice.rows);
}

__global__ void sum_factored(const float* from, MatrixSlice slice, int64_t first_row, int64_t end_row, float scale, double coarse_unit,
                             double fine_unit, double* row_sums, double* column_sums) {
  for (int64_t first = first_row + blockIdx.y * kStripRows; first < end_row; first += gridDim.y * kStripRows) {
    sum_strip(from, slice, first, min(first + kStripRows, end_row), scale, coarse_unit, fine_unit, row_sums, column_sums);
  }
}

dim3 segment_grid(int64_t segments) { return dim3(kBlocksASegment, static_cast<unsigned>(segments)); }

}  // namespace

void launch_segment_maxima(Stream stream, const float* from, const int64_t* begins, const int64_t* ends, int64_t segments,
                           double* maxima) {
  if (segments == 0) return;
  start("segment_maxima", find_maxima, segment_grid(segments), kSumThreads, stream, from, begins, ends, maxima);
}

void launch_exact_square_sums(Stream stream, const float* from, const int64_t* begins, const int64_t* ends,
                              const double* bins, int64_t segments, double* sums) {
  if (segments == 0) return;
  start("exact_square_sums", sum_squares, segment_grid(segments), kSumThreads, stream, from, begins, ends, bins, sums);
}

void launch_factored_square_sums(Stream stream, const float* from, const MatrixSlice& slice, float scale, double coarse,
                                 double fine, double* row_sums, double* column_sums) {
  if (slice.numel == 0) return;
  const int64_t first_row = slice.begin / slice.columns;
  const int64_t end_row = (slice.begin + slice.numel - 1) / slice.columns + 1;
  const int64_t strips = std::min(kMostStrips, (end_row - first_row + kStripRows - 1) / kStripRows);
  const dim3 grid(static_cast<unsigned>((slice.columns + kSumThreads - 1) / kSumThreads), static_cast<unsigned>(strips));
  start("factored_square_sums", sum_factored, grid, kSumThreads, stream, from, slice, first_row, end_row, scale, coarse, fine, row_sums,
        column_sums);
}

}  // namespace troupe::cuda
