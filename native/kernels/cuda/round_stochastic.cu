// Rounding by chance, with the CPU's bits: see kernels/cpu/round_stochastic.cc.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/philox.cuh"

namespace troupe::cuda {
namespace {

__device__ __forceinline__ void store_by_chance(BFloat16& to, float value, uint32_t word) { to.x = bfloat16_by_chance(value, word); }
__device__ __forceinline__ void store_by_chance(Float16& to, float value, uint32_t word) { to.x = float16_by_chance(value, word); }

template <class To>
struct RoundStochastic {
  const float* from;
  To* to;
  PhiloxPlace place;

  template <int N>
  __device__ void run(int64_t i) const {
    float value[N];
    uint32_t words[N];
    read<N>(from + i, value);
    philox_words<N>(place, place.offset + i, words);
#pragma unroll
    for (int j = 0; j < N; j++) store_by_chance(to[i + j], value[j], words[j]);
  }
};

}  // namespace

void launch_round_stochastic(Stream stream, Array to, const float* from, int64_t numel, PhiloxPlace place) {
  const bool wide = is_wide(from, Format::float32);
  if (to.format == Format::bfloat16) {
    launch_each("round_stochastic_", stream, numel, wide, RoundStochastic<BFloat16>{from, static_cast<BFloat16*>(to.data), place});
  } else {
    launch_each("round_stochastic_", stream, numel, wide, RoundStochastic<Float16>{from, static_cast<Float16*>(to.data), place});
  }
}

}  // namespace troupe::cuda
