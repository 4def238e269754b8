// Kernels over the rows of a matrix: sums along a row by one block, and sums down the columns in an order that the shape
// alone decides.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/formats.cuh"

namespace troupe::cuda {

constexpr int kWarp = 32;

// Threads for rows of `dim` elements, `each` of which a thread takes at a time: whole warps.
inline int row_threads(int64_t dim, int each, int most = 256) {
  const int64_t wanted = (dim + each - 1) / each;
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

template <int N>
using Count = std::integral_constant<int, N>;

// Calls body(Count<N>, index) for the elements of a row, shared out among the block's threads: N is kWide where `wide` is set,
// which asks for a `dim` that is a multiple of it.
template <bool wide, class Body>
__device__ __forceinline__ void each_of_row(int64_t dim, const Body& body) {
  constexpr int N = wide ? kWide : 1;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < dim; i += static_cast<int64_t>(blockDim.x) * N) {
    body(Count<N>{}, i);
  }
}

constexpr int kColumnThreads = 32;
constexpr int kRowThreads = 8;

// partial[s][block][column] = sum over the block's rows of term(row, column)[s].
template <int S, class Term>
__global__ void sum_columns(Term term, Rows shape, int64_t rows_a_block, int64_t num_blocks, float* partial) {
  __shared__ float sums[S][kRowThreads][kColumnThreads];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x;
  const int64_t first = blockIdx.y * rows_a_block;
  const int64_t last = min(shape.rows, first + rows_a_block);
  float sum[S] = {};
  if (column < shape.dim) {
    for (int64_t row = first + threadIdx.y; row < last; row += kRowThreads) {
      float terms[S];
      term.at(row, column, terms);
#pragma unroll
      for (int s = 0; s < S; s++) sum[s] += terms[s];
    }
  }
#pragma unroll
  for (int s = 0; s < S; s++) sums[s][threadIdx.y][threadIdx.x] = sum[s];
  __syncthreads();
  if (threadIdx.y != 0 || column >= shape.dim) return;
#pragma unroll
  for (int s = 0; s < S; s++) {
    float total = sums[s][0][threadIdx.x];
    for (int y = 1; y < kRowThreads; y++) total += sums[s][y][threadIdx.x];
    partial[(s * num_blocks + blockIdx.y) * shape.dim + column] = total;
  }
}

static __global__ void add_row_blocks(const float* partial, int64_t num_blocks, int64_t dim, float* to) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  float sum = partial[column];
  for (int64_t block = 1; block < num_blocks; block++) sum += partial[block * dim + column];
  to[column] = sum;
}

// to[s][column] = sum over all rows of term.at(row, column)[s]; `partial` has S * row_blocks(rows) * dim elements.
template <int S, class Term>
void launch_sum_columns(const char* name, Stream stream, const Term& term, Rows shape, float* partial,
                        float* const (&to)[S]) {
  const int64_t blocks = row_blocks(shape.rows);
  if (shape.dim == 0) return;
  const int64_t rows_a_block = (shape.rows + blocks - 1) / blocks;
  const dim3 grid(static_cast<unsigned>((shape.dim + kColumnThreads - 1) / kColumnThreads), static_cast<unsigned>(blocks));
  start(name, sum_columns<S, Term>, grid, dim3(kColumnThreads, kRowThreads), stream, term, shape, rows_a_block, blocks, partial);
  for (int s = 0; s < S; s++) {
    start(name, add_row_blocks, static_cast<unsigned>((shape.dim + 127) / 128), 128, stream, partial + s * blocks * shape.dim,
                                                                                    blocks, shape.dim, to[s]);
  }
}

}  // namespace troupe::cuda
