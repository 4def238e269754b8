// Kernels over the rows of a matrix: sums along a row by one block, and sums down the columns in an order that the shape
// alone decides.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/formats.cuh"

namespace troupe::cuda {

constexpr int kWarp = 32;

// Threads for rows of `dim` elements, kWide of which a thread takes at a time: whole warps.
inline int row_threads(int64_t dim, int most = 256) {
  const int64_t wanted = (dim + kWide - 1) / kWide;
  return static_cast<int>(std::clamp<int64_t>((wanted + kWarp - 1) / kWarp * kWarp, kWarp, most));
}

struct Sum {
  template <class T>
  __device__ static T join(T a, T b) {
    return a + b;
  }
};
struct Max {
  __device__ static float join(float a, float b) { return a > b ? a : b; }
};

// Joins one value of each thread of the block, in an order that the number of threads decides; every thread gets the result.
template <class Join, class T>
__device__ T join_block(T value) {
  __shared__ T of_warps[kWarp];
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value = Join::join(value, __shfl_down_sync(~0u, value, offset));
  const int num_warps = blockDim.x / kWarp;
  __syncthreads();  // the last call's values have been read
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  T joined = of_warps[0];
  for (int warp = 1; warp < num_warps; warp++) joined = Join::join(joined, of_warps[warp]);
  return joined;
}

template <class T>
__device__ T sum_block(T value) {
  return join_block<Sum>(value);
}

// The threads that share a row: a block of them, or a warp, which need not wait for each other and so have many short rows on
// their way at once.
struct BlockARow {
  __device__ static int64_t row() { return blockIdx.x; }
  __device__ static int index() { return threadIdx.x; }
  __device__ static int size() { return blockDim.x; }
  __device__ static float sum(float value) { return sum_block(value); }
};
struct WarpARow {
  __device__ static int64_t row() { return static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp; }
  __device__ static int index() { return threadIdx.x % kWarp; }
  __device__ static int size() { return kWarp; }
  // Both of a pair add the same two: each thread has the same bits.
  __device__ static float sum(float value) {
#pragma unroll
    for (int lane = kWarp / 2; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
    return value;
  }
};

constexpr int64_t kMostOfWarp = 1024;  // elements of a row that a warp takes
constexpr int kWarpRows = 4;           // rows of a block of warps

// Calls launch(wide, team, blocks, threads) with types that tell how the rows are read, and by whom: the dim alone decides that, for
// it decides the order of sums.
template <class Launch>
void with_team(Rows shape, bool wide, const Launch& launch) {
  const auto read_by = [&](auto team, unsigned blocks, int threads) {
    if (wide) {
      launch(std::true_type{}, team, blocks, threads);
    } else {
      launch(std::false_type{}, team, blocks, threads);
    }
  };
  const auto rows = static_cast<unsigned>(shape.rows);
  if (shape.dim <= kMostOfWarp) {
    read_by(WarpARow{}, (rows + kWarpRows - 1) / kWarpRows, kWarpRows * kWarp);
  } else {
    read_by(BlockARow{}, rows, row_threads(shape.dim));
  }
}

template <int N>
using Count = std::integral_constant<int, N>;

// Calls body(Count<N>, index) for the elements of a row, of which the team's threads take kWide each by turns, so that their order does
// not depend on where the row lies. N is kWide where `wide` is set, which asks for a `dim` that is a multiple of it, and else 1.
template <bool wide, class Team, class Body>
__device__ __forceinline__ void each_of_row(int64_t dim, const Body& body) {
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(Team::index()) * kWide; i < dim; i += static_cast<int64_t>(Team::size()) * kWide) {
    if constexpr (wide) {
      body(Count<kWide>{}, i);
    } else {
      for (int64_t j = i; j < min(dim, i + kWide); j++) body(Count<1>{}, j);
    }
  }
}

// N elements of x, to which the residual's are added where there is one. The sum is rounded as if it were written and read again, and
// written.
template <int N, class T>
__device__ __forceinline__ void read_sum(const T* x, const T* residual, T* sum, int64_t i, float (&value)[N]) {
  read<N>(x + i, value);
  if (residual == nullptr) return;
  float more[N];
  read<N>(residual + i, more);
#pragma unroll
  for (int j = 0; j < N; j++) {
    T rounded;
    store(rounded, value[j] + more[j]);
    value[j] = load(rounded);
  }
  write<N>(sum + i, value);
}

// Columns go to blocks of threads that each keep to one, or kWide side by side, and rows to row_blocks(rows) of them.
constexpr int kColumnThreads = 32;
constexpr int kRowThreads = 8;

inline int64_t rows_a_block(Rows shape) { return (shape.rows + row_blocks(shape.rows) - 1) / row_blocks(shape.rows); }
inline dim3 column_threads() { return {kColumnThreads, kRowThreads}; }
inline dim3 column_blocks(Rows shape, bool wide) {
  const int64_t columns = kColumnThreads * (wide ? kWide : 1);
  return {static_cast<unsigned>((shape.dim + columns - 1) / columns), static_cast<unsigned>(row_blocks(shape.rows))};
}

// partial[s][block][column] = sum over the block's rows of term.at<N>(row, column)[s], for N columns side by side.
template <int S, int N, class Term>
__global__ void sum_columns(Term term, Rows shape, int64_t block_rows, int64_t num_blocks, float* partial) {
  __shared__ float sums[S][N][kRowThreads][kColumnThreads];
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x) * N;
  const int64_t first = blockIdx.y * block_rows;
  const int64_t last = min(shape.rows, first + block_rows);
  float sum[S][N] = {};
  if (column < shape.dim) {
#pragma unroll 4
    for (int64_t row = first + threadIdx.y; row < last; row += kRowThreads) {
      float terms[S][N];
      term.at(row, column, terms);
#pragma unroll
      for (int s = 0; s < S; s++) {
#pragma unroll
        for (int j = 0; j < N; j++) sum[s][j] += terms[s][j];
      }
    }
  }
#pragma unroll
  for (int s = 0; s < S; s++) {
#pragma unroll
    for (int j = 0; j < N; j++) sums[s][j][threadIdx.y][threadIdx.x] = sum[s][j];
  }
  __syncthreads();
  if (threadIdx.y != 0 || column >= shape.dim) return;
#pragma unroll
  for (int s = 0; s < S; s++) {
#pragma unroll
    for (int j = 0; j < N; j++) {
      float total = sums[s][j][0][threadIdx.x];
      for (int y = 1; y < kRowThreads; y++) total += sums[s][j][y][threadIdx.x];
      partial[(s * num_blocks + blockIdx.y) * shape.dim + column + j] = total;
    }
  }
}

template <int S>
struct ColumnSums {
  Array of[S];
};

template <int S>
__global__ void add_row_blocks(const float* partial, int64_t num_blocks, int64_t dim, ColumnSums<S> to) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  const float* from = partial + blockIdx.y * num_blocks * dim + column;
  float sum = *from;
#pragma unroll 8
  for (int64_t block = 1; block < num_blocks; block++) sum += from[block * dim];
  const float total[1] = {sum};
  write<1>(to.of[blockIdx.y], column, total);
}

// to[s][column] = sum over all rows of term.at(row, column)[s]; `partial` has S * row_blocks(rows) * dim elements. `wide`: whether
// kWide columns may be read at once.
template <int S, class Term>
void launch_sum_columns(const char* name, Stream stream, const Term& term, Rows shape, bool wide, float* partial,
                        const ColumnSums<S>& to) {
  if (shape.dim == 0) return;
  const int64_t blocks = row_blocks(shape.rows);
  start(name, wide ? sum_columns<S, kWide, Term> : sum_columns<S, 1, Term>, column_blocks(shape, wide), column_threads(), stream, term, shape, rows_a_block(shape), blocks, partial);
  start(name, add_row_blocks<S>, dim3(static_cast<unsigned>((shape.dim + 127) / 128), S), 128, stream, partial, blocks, shape.dim, to);
}

}  // namespace troupe::cuda
