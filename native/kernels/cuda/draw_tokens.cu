// A token of each row of logits: see kernels/cpu/draw_tokens.cc, whose tokens it draws. A block a row.
#include <limits>

#include "kernels/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

constexpr int kMostThreads = 1024;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct First {
  __device__ static int64_t join(int64_t a, int64_t b) { return a < b ? a : b; }
};

// Calls body(index) for what the block's threads share out among them.
template <class Body>
__device__ __forceinline__ void each_of_block(int64_t count, const Body& body) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) body(i);
}

// The largest weight that is reached: reached(units) is asked for the units of all weights that are no smaller. Bit by bit from the
// highest, for the bits of weights, which are no larger than 1, are in their order.
template <class Units, class Reached>
__device__ float largest_reached(const float* weights, int64_t num_classes, const Units& units, const Reached& reached) {
  uint32_t found = 0;
  for (int bit = 29; bit >= 0; bit--) {
    const float least = float_of(found | 1u << bit);
    unsigned long long sum = 0;
    each_of_block(num_classes, [&](int64_t i) {
      if (weights[i] >= least) sum += units(weights[i]);
    });
    if (reached(sum_block(sum))) found |= 1u << bit;
  }
  return float_of(found);
}

__device__ void drop_below(float* weights, int64_t num_classes, float least) {
  each_of_block(num_classes, [&](int64_t i) {
    if (weights[i] < least) weights[i] = 0.0f;
  });
}

template <class T>
__global__ void draw_tokens(const T* logits, Rows rows, const float* uniforms, Restriction restriction, float* all_weights,
                            float* all_sums, int64_t* tokens) {
  const int64_t row = blockIdx.x, num_classes = rows.dim, pieces = (num_classes + kDrawnPiece - 1) / kDrawnPiece;
  const T* x = logits + row * num_classes;
  float largest = kLowest;
  each_of_block(num_classes, [&](int64_t i) { largest = Max::join(load(x[i]), largest); });
  largest = join_block<Max>(largest);
  if (restriction.temperature == 0.0f) {
    int64_t first = num_classes;
    each_of_block(num_classes, [&](int64_t i) {
      if (i < first && load(x[i]) == largest) first = i;
    });
    first = join_block<First>(first);
    if (threadIdx.x == 0) tokens[row] = first == num_classes ? 0 : first;
    return;
  }
  // Each thread keeps to its own weights until they are drawn from.
  float* weights = all_weights + row * num_classes;
  const float scale = 1.0f / restriction.temperature;
  each_of_block(num_classes, [&](int64_t i) { weights[i] = exp_f32((load(x[i]) - largest) * scale); });
  if (restriction.top_k > 0 && restriction.top_k < num_classes) {
    const auto count = static_cast<unsigned long long>(restriction.top_k);
    drop_below(weights, num_classes,
               largest_reached(weights, num_classes, [](float) { return 1ull; },
                               [&](unsigned long long larger) { return larger >= count; }));
  }
  if (restriction.top_p < 1.0) {
    const auto units = [](float weight) -> unsigned long long { return units_of(weight); };
    unsigned long long own = 0;
    each_of_block(num_classes, [&](int64_t i) { own += units(weights[i]); });
    const unsigned long long all = sum_block(own);
    drop_below(weights, num_classes,
               largest_reached(weights, num_classes, units,
                               [&](unsigned long long larger) { return reach(larger, all, restriction.top_p); }));
  }
  __syncthreads();
  // A warp a piece: its threads are the CPU's lanes.
  float* sums = all_sums + row * pieces;
  const int lane = threadIdx.x % kWarp, num_warps = blockDim.x / kWarp;
  for (int64_t piece = threadIdx.x / kWarp; piece < pieces; piece += num_warps) {
    const int64_t end = min(num_classes, (piece + 1) * kDrawnPiece);
    float sum = 0.0f;
    for (int64_t i = piece * kDrawnPiece + lane; i < end; i += kWarp) sum += weights[i];
#pragma unroll
    for (int width = kWarp / 2; width > 0; width /= 2) sum += __shfl_down_sync(~0u, sum, width);
    if (lane == 0) sums[piece] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) tokens[row] = token_at(uniforms[row], weights, num_classes, sums);
}

}  // namespace

void launch_draw_tokens(Stream stream, Format format, Rows rows, const void* logits, const float* uniforms,
                        const Restriction& restriction, float* weights, float* sums, int64_t* tokens) {
  if (rows.rows == 0) return;
  with_format(format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    start("draw_tokens", draw_tokens<T>, static_cast<unsigned>(rows.rows), row_threads(rows.dim, kMostThreads), stream,
          static_cast<const T*>(logits), rows, uniforms, restriction, weights, sums, tokens);
  });
}

}  // namespace troupe::cuda
