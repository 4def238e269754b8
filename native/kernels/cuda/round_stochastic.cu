// Rounding by chance, with the CPU's bits: see kernels/cpu/round_stochastic.cc.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/philox.cuh"

namespace troupe::cuda {
namespace {

__device__ __forceinline__ void store_by_chance(BFloat16& to, float value, uint32_t word) {
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t moved = (magnitude + (word & 0xFFFFu)) >> 16;
  uint32_t rounded = moved > 0x7F7Fu ? 0x7F7Fu : moved;
  rounded = magnitude >= 0x7F800000u ? 0x7F80u : rounded;
  rounded = magnitude > 0x7F800000u ? 0x7FC0u : rounded;
  to.x = static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u));
}

__device__ __forceinline__ void store_by_chance(Float16& to, float value, uint32_t word) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t moved = (magnitude - kRebias + (word & 0x1FFFu)) >> 13;
  const uint32_t normal = moved > 0x7BFFu ? 0x7BFFu : moved;
  const float small = magnitude < (113u << 23) ? float_of(magnitude) : 0.0f;
  const auto fixed = static_cast<uint32_t>(static_cast<int32_t>(small * 0x1p44f));
  const uint32_t subnormal = (fixed + (word & 0xFFFFFu)) >> 20;
  uint32_t rounded = magnitude < (113u << 23) ? subnormal : normal;
  rounded = magnitude >= (143u << 23) ? 0x7C00u : rounded;
  rounded = magnitude > 0x7F800000u ? 0x7E00u : rounded;
  to.x = static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u));
}

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
