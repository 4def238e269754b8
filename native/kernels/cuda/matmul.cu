// Products whose rows do not depend on each other: see kernels/cpu/invariant_matmul.cc, whose sums these are, with its bits. A block makes
// a tile of the product: pieces of both operands lie in shared memory as float32, and each thread keeps kWide x kWide sums. Tensor cores
// take no part: nobody tells in which order they add.
#include <cfloat>
#include <cmath>

#include "kernels/cuda/formats.cuh"

namespace troupe::cuda {
namespace {

constexpr int kTile = 64;   // rows and columns of a block's tile
constexpr int kPiece = 32;  // of the inner dim; even, so that pairs are complete
constexpr int kSide = kTile / kWide;
constexpr int kThreads = kSide * kSide;

// One number of each of a tile's lines, and a gap: without it threads that write one line would all wait for one bank.
using Slice = Wide<float>[kSide + 1];

// To bfloat16's products numbers below float32's normal ones are zeros, as they are to vdpbf16ps.
#if defined(__CUDA_ARCH__)
__device__ __forceinline__ float fuse_without_tiny(float a, float b, float sum) {
  float fused;
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(fused) : "f"(a), "f"(b), "f"(sum));
  return fused;
}
#else
__device__ __forceinline__ float zero_if_tiny(float value) { return fabsf(value) < FLT_MIN ? copysignf(0.0f, value) : value; }

__device__ __forceinline__ float fuse_without_tiny(float a, float b, float sum) {
  return zero_if_tiny(fmaf(zero_if_tiny(a), zero_if_tiny(b), zero_if_tiny(sum)));
}
#endif

template <class T>
__device__ __forceinline__ float fuse(float a, float b, float sum) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return fuse_without_tiny(a, b, sum);
  } else {
    return fmaf(a, b, sum);
  }
}

// Reads numbers [first, first + kPiece) of kTile lines; zeros where there are none.
template <class T>
__device__ void read_piece(const Lines& from, int64_t first_line, int64_t num_lines, int64_t first, int64_t inner, Slice* piece) {
  const auto* data = static_cast<const T*>(from.data);
  const bool across = from.of_line == 1;  // so that neighbours read neighbours
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kPiece; i += kThreads) {
    const int line = across ? i % kTile : i / kPiece, k = across ? i / kTile : i % kPiece;
    const bool is_there = first_line + line < num_lines && first + k < inner;
    piece[k][line / kWide].at[line % kWide] =
        is_there ? load(data[(first_line + line) * from.of_line + (first + k) * from.of_inner]) : 0.0f;
  }
}

template <class T>
__device__ __forceinline__ void add_products(const Wide<float>& a, const Wide<float>& b, float (&sums)[kWide][kWide]) {
#pragma unroll
  for (int i = 0; i < kWide; i++) {
#pragma unroll
    for (int j = 0; j < kWide; j++) sums[i][j] = fuse<T>(a.at[i], b.at[j], sums[i][j]);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) multiply_rows(Lines a, Lines b, ProductShape shape, ProductBias bias, T* to) {
  __shared__ Slice a_piece[kPiece], b_piece[kPiece];
  const int64_t across = (shape.columns + kTile - 1) / kTile;
  const int64_t first_row = blockIdx.x / across * kTile, first_column = blockIdx.x % across * kTile;
  const int own_row = threadIdx.x / kSide, own_column = threadIdx.x % kSide;  // of the tile, in kWide
  float sums[kWide][kWide] = {};
  for (int64_t first = 0; first < shape.inner; first += kPiece) {
    read_piece<T>(a, first_row, shape.rows, first, shape.inner, a_piece);
    read_piece<T>(b, first_column, shape.columns, first, shape.inner, b_piece);
    __syncthreads();
    // No zero behind the last number is added: it would make a zero below zero one above. But a pair is complete.
    const auto count = static_cast<int>(min(int64_t{kPiece}, shape.inner - first));
    if constexpr (std::is_same_v<T, BFloat16>) {
#pragma unroll 4
      for (int k = 0; k < count; k += 2) {
        add_products<T>(a_piece[k + 1][own_row], b_piece[k + 1][own_column], sums);
        add_products<T>(a_piece[k][own_row], b_piece[k][own_column], sums);
      }
    } else {
#pragma unroll 8
      for (int k = 0; k < count; k++) add_products<T>(a_piece[k][own_row], b_piece[k][own_column], sums);
    }
    __syncthreads();  // the pieces have been read
  }
  const auto* added = static_cast<const T*>(bias.data);
#pragma unroll
  for (int i = 0; i < kWide; i++) {
    const int64_t row = first_row + own_row * kWide + i;
#pragma unroll
    for (int j = 0; j < kWide; j++) {
      const int64_t column = first_column + own_column * kWide + j;
      if (row >= shape.rows || column >= shape.columns) continue;
      const float sum = sums[i][j];
      store(to[row * shape.columns + column],
            added == nullptr ? sum : sum + load(added[row * bias.of_row + column * bias.of_column]));
    }
  }
}

}  // namespace

void launch_multiply_rows(Stream stream, Format format, const ProductShape& shape, Lines a, Lines b, ProductBias bias, void* to) {
  const int64_t tiles = (shape.rows + kTile - 1) / kTile * ((shape.columns + kTile - 1) / kTile);
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("mm", multiply_rows<T>, static_cast<unsigned>(tiles), kThreads, stream, a, b, shape, bias, static_cast<T*>(to));
  });
}

}  // namespace troupe::cuda
